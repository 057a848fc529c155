"""The time of a step of every policy with features, against cascade-lin-ts, at 3,000 items.

    python -m benchmarks.policies

All are played in turns within one run, several times over, and the best time of each counts: machines are
noisy, ratios less so. Contexts come from a world whose users have vectors.
"""

from firstclick import policy_classes, simulate

N_ITEMS, N_FEATURES, K, STEPS, ROUNDS = 3000, 20, 4, 4000, 3
PLAIN = f"linear:n_items={N_ITEMS},n_features={N_FEATURES}"
WITH_USERS = f"vectors:n_items={N_ITEMS},n_features={N_FEATURES},n_context=3,users=50"
PARENT, LIMIT = "cascade-lin-ts", 5


def best_times(world, policies):
    """Microseconds of a step, by policy."""
    times = dict.fromkeys(policies, float("inf"))
    for turn in range(ROUNDS):
        for result in simulate(policies, world, k=K, steps=STEPS, seed=turn).results:
            times[result.policy] = min(times[result.policy], 1e6 * result.seconds_per_step)
    return times


def main():
    policies = [name for name, cls in policy_classes().items() if cls.needs_features]
    contextual = [PARENT, "context-lin-ts", "c3-ucb"]
    print(f"microseconds a step, and times {PARENT}, at {N_ITEMS:,} items, {N_FEATURES} features, k = {K}")
    for title, world, names in (("", PLAIN, policies), (", with a context", WITH_USERS, contextual)):
        times = best_times(world, names)
        for name in sorted(times, key=times.get):
            ratio = times[name] / times[PARENT]
            print(f"{name + title:36}{times[name]:8.1f}{ratio:8.2f}{'   over' if ratio > LIMIT else ''}")


if __name__ == "__main__":
    main()
