"""What every policy must do: `check_policy` for authors of learners, and our own conformance tests.

    from firstclick.testing import check_policy
    check_policy(MyPolicy(eagerness=2.0))

Each check says what is wrong and what the likely cause is. A policy declares what it can
(`mergeable`, `order_free`, `learns`); checks that do not apply are skipped, and `checks_of` says why.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog import Catalog
from firstclick.kernels.compiling import compiled
from firstclick.kernels.ranking import Request
from firstclick.live import estimate_once, learn_once, recommend_some
from firstclick.protocol import EVERYTHING, Policy, State, catalog_arrays
from firstclick.ranker import Ranker
from firstclick.registry import make_policy
from firstclick.simulate import simulate
from firstclick.streams import stream, stream_key
from firstclick.worlds.linear import Linear

N_ITEMS, N_FEATURES, K = 17, 5, 3


class Driver:
    """A policy driven by hand, one call at a time, with noise and ties decided by numbers."""

    def __init__(
        self,
        policy: Policy | str,
        features: NDArray[np.float64] | None = None,
        *,
        n_items: int = N_ITEMS,
        k: int = K,
        seed: int = 0,
        labels: ArrayLike | None = None,
    ) -> None:
        self.policy = make_policy(policy)
        self.k = k
        if features is None:
            features = stream(seed, "features").standard_normal((n_items, N_FEATURES))
        self.catalog = self.policy.shortcuts(catalog_arrays(features, len(features), labels))
        n_features = features.shape[1]
        self.numbers = self.policy.numbers(k, features)
        self.state: State = self.policy.initial_state(len(features), n_features, k)
        self._key = stream_key(seed, "driver")
        self._noise = np.empty(self.policy.noise_size(k, n_features))

    def recommend(self, number: int = 0, request: Request = EVERYTHING) -> list[int]:
        """The slate under the noise of this number."""
        slates, found = np.full((1, self.k), -1, np.int64), np.zeros(1, np.int64)
        compiled(recommend_some, type(self.policy))(
            self.numbers, self.state, self.catalog, request, self._key, np.array([number]), self._noise,
            slates, found, np.empty((1, 0)), np.empty(0),
        )  # fmt: skip
        return [int(item) for item in slates[0, : found[0]]]

    def learn(self, slate: Sequence[int], click: int | None) -> None:
        """Learn that position `click` of the slate was the first clicked, or none."""
        clicks = np.zeros(len(slate), np.uint8)
        if click is not None:
            clicks[click] = 1
        examined = len(slate) if click is None else click + 1
        compiled(learn_once, type(self.policy))(
            self.numbers, self.state, self.catalog, np.array(slate, np.int64), examined, clicks
        )

    def estimate(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """Means and standard deviations of what is held for the attraction of these rows, two lines."""
        held = np.full((2, len(rows)), np.inf)  # What a kernel does not fill is neither a number nor NaN.
        compiled(estimate_once, type(self.policy))(
            self.numbers, self.state, self.catalog, np.array(rows, np.int64), held[0], held[1]
        )
        return held

    def play(self, steps: int, *, seed: int = 0, first: int = 0) -> list[tuple[list[int], int | None]]:
        """Recommend and learn with made-up clicks; the log of slates and clicks."""
        draw = stream(seed, "clicks")
        log: list[tuple[list[int], int | None]] = []
        for step in range(first, first + steps):
            slate = self.recommend(step)
            position = int(draw.integers(0, self.k + 1))
            click = position if position < len(slate) else None
            self.learn(slate, click)
            log.append((slate, click))
        return log


def request(candidates: Sequence[int] = (), hidden: Sequence[int] = (), n_items: int = N_ITEMS) -> Request:
    """A request for some rows only."""
    mask = np.zeros(n_items if hidden else 0, np.uint8)
    mask[list(hidden)] = 1
    return Request(np.array(candidates, np.int64), mask)


def states_differ(first: State, second: State, tolerance: float = 0.0) -> str:
    """The name of the first array that differs by more than the tolerance, relative to 1, or ''."""
    for name, a, b in zip(first._fields, first, second, strict=True):
        scale = 1.0 + np.abs(a).max(initial=0.0)
        if a.shape != b.shape or not np.abs(a - b).max(initial=0.0) <= tolerance * scale:
            return str(name)
    return ""


def _copy(state: State) -> State:
    return type(state)(*(array.copy() for array in state))


def gives_k_distinct_items(policy: Policy) -> None:
    driver = Driver(policy)
    for step in range(30):
        slate = driver.recommend(step)
        assert len(slate) == K, f"recommend must fill all {K} places of the slate, it returned {len(slate)}"
        assert len(set(slate)) == K, f"an item is in the slate twice: {slate}"
        assert all(0 <= item < N_ITEMS for item in slate), f"rows must be 0 to {N_ITEMS - 1}: {slate}"
        driver.learn(slate, step % K)


def respects_candidates_and_hidden_items(policy: Policy) -> None:
    driver = Driver(policy)
    driver.play(20)
    for step in range(10):
        slate = driver.recommend(step, request([11, 2, 7, 5], hidden=[7]))
        assert set(slate) == {11, 2, 5}, (
            f"of candidates 11, 2, 7, 5 with 7 hidden, all but 7 fit in {K} places, got {slate}; "
            "score the rows of rows_of and order them with rank"
        )
    hidden = [item for item in range(N_ITEMS) if item not in (4, 9)]
    slate = driver.recommend(0, request(hidden=hidden))
    assert sorted(slate) == [4, 9], f"only rows 4 and 9 were left: a slate of 2, got {slate}"


def recommend_leaves_the_state_alone(policy: Policy) -> None:
    driver = Driver(policy)
    driver.play(20)
    before = _copy(driver.state)
    for step in range(10):
        driver.recommend(step)
    changed = states_differ(before, driver.state)
    assert not changed, f"recommend changed {changed}: it must only read the state"


def same_noise_gives_the_same_slate(policy: Policy) -> None:
    driver = Driver(policy)
    driver.play(20)
    for step in range(10):
        first, second = driver.recommend(step), driver.recommend(step)
        assert first == second, f"two slates from one key: {first} and {second}; kernels must never draw"


def unexamined_positions_teach_nothing(policy: Policy) -> None:
    first, second = Driver(policy), Driver(policy)
    first.learn([3, 8, 1], 0)
    second.learn([3, 14, 6], 0)
    changed = states_differ(first.state, second.state)
    assert not changed, f"{changed} depends on positions after the click: learn only from slate[:examined]"


def counts_one_unit_of_time_a_slate(policy: Policy) -> None:
    driver = Driver(policy)
    driver.play(13)
    assert driver.state.time[0] == 13, f"13 slates were learned, state.time says {driver.state.time[0]}"


def continues_after_save_and_load(policy: Policy) -> None:
    features = stream(1, "features").standard_normal((N_ITEMS, N_FEATURES))
    ranker = Ranker(policy, Catalog(range(0, 3 * N_ITEMS, 3), features), k=K, seed=2)
    for step in range(20):
        ranker.learn(ranker.recommend(), click=step % K)
    waiting = ranker.recommend()
    with tempfile.TemporaryDirectory() as folder:
        ranker.save(Path(folder) / "ranker.npz")
        again = Ranker.load(Path(folder) / "ranker.npz")
    for one in (ranker, again):
        one.learn(waiting, click=1)
    for step in range(20):
        slates = ranker.recommend(), again.recommend()
        assert slates[0] == slates[1], f"after loading, slate {step} differs: is all it knows in the state?"
        for one, slate in zip((ranker, again), slates, strict=True):
            one.learn(slate, click=None)
    changed = states_differ(ranker.state, again.state)
    assert not changed, f"after loading, {changed} went another way"


def merged_shards_equal_the_whole_log(policy: Policy) -> None:
    whole, left, right = Driver(policy), Driver(policy), Driver(policy)
    for step, (slate, click) in enumerate(whole.play(60)):
        (left if step % 3 else right).learn(slate, click)
    merged = policy.merge(left.state, right.state)
    changed = states_differ(whole.state, merged, 1e-9)
    assert not changed, f"{changed} of merged shards differs: is the prior counted once, and only once?"


def order_of_feedback_does_not_matter(policy: Policy) -> None:
    forward, backward = Driver(policy), Driver(policy)
    log = forward.play(60)
    for slate, click in reversed(log):
        backward.learn(slate, click)
    changed = states_differ(forward.state, backward.state, 1e-9)
    assert not changed, f"{changed} depends on the order of feedback; declare order_free = False if it must"


def stays_finite_in_extremes(policy: Policy) -> None:
    extreme = stream(3, "features").standard_normal((N_ITEMS, N_FEATURES))
    extreme[0], extreme[1], extreme[3] = 0.0, 1e6, extreme[2]
    for click in (None, 0, K - 1):
        driver = Driver(policy, extreme)
        for step in range(10_000):
            slate = driver.recommend(step)
            assert len(slate) == K, f"step {step} of always click={click} gave {len(slate)} items"
            driver.learn(slate, click)
        for name, array in zip(driver.state._fields, driver.state, strict=True):
            assert np.isfinite(array).all(), f"{name} is not finite after 10,000 rounds of click={click}"


def relabelling_items_only_permutes_slates(policy: Policy) -> None:
    features = stream(4, "features").standard_normal((N_ITEMS, N_FEATURES))
    order = stream(4, "order").permutation(N_ITEMS)
    plain = Driver(policy, features)
    permuted = Driver(policy, features[order], labels=order)
    draw = stream(4, "clicks")
    for step in range(60):
        slate, other = plain.recommend(step), permuted.recommend(step)
        assert slate == [int(order[item]) for item in other], (
            f"step {step}: another order of rows gave other items; use catalog.labels[item] in hashes, "
            "never the row number, and order with rank"
        )
        click = int(draw.integers(0, K))
        plain.learn(slate, click)
        permuted.learn(other, click)


def keeps_what_it_knows_when_items_are_added(policy: Policy) -> None:
    features = stream(5, "features").standard_normal((N_ITEMS + 4, N_FEATURES))
    small, large = Driver(policy, features[:N_ITEMS]), Driver(policy, features)
    for slate, click in small.play(40):
        large.learn(slate, click)
    grown = policy.grow(small.state, N_ITEMS + 4)
    changed = states_differ(large.state, grown)
    assert not changed, f"{changed} differs from a learner that had room from the start: see Policy.grow"


def estimates_follow_what_is_observed(policy: Policy) -> None:
    driver, rows, draw = Driver(policy), list(range(N_ITEMS)), stream(7, "clicks")
    first = driver.estimate(rows)
    for _ in range(300):
        # First in the slate, where every learner learns.
        driver.learn([4, 2, 3], 0 if draw.random() < 0.7 else None)
        driver.learn([9, 2, 3], 0 if draw.random() < 0.1 else None)
    state = _copy(driver.state)
    held = driver.estimate(rows)
    changed = states_differ(state, driver.state)
    assert not changed, f"estimate changed {changed}: it must only read the state"
    same = np.array_equal(held, driver.estimate(rows[::-1])[:, ::-1], equal_nan=True)
    assert same, "rows in another order have other estimates: means[j] and deviations[j] belong to rows[j]"
    if np.isnan([first, held]).all():
        return
    sound = np.isfinite([first, held]).all() and (held[1] >= 0).all()
    assert sound, f"estimates must be finite, deviations not negative, or all NaN at all times: {held}"
    for row in (4, 9):
        was, now = first[1, row], held[1, row]
        assert now <= was, f"row {row} was examined 300 times; its deviation went from {was} to {now}"
    assert held[0, 4] > held[0, 9], f"7 clicks out of 10: {held[0, 4]}; one out of 10: {held[0, 9]}"


def beats_random_order(policy: Policy) -> None:
    # Far from the edge: after so many steps our own learners have lost less than half of this.
    world = Linear(n_items=40, n_features=4, best=0.6).build(6)
    results = simulate([policy, "random"], world, k=K, steps=4000, runs=5, seed=6)
    mine, random = (float(result.mean("expected_regret")[-1]) for result in results.results)
    assert mine < 0.8 * random, (
        f"it lost {mine:.0f} clicks where random order lost {random:.0f}; declare learns = False if it must"
    )


@dataclass(frozen=True)
class Check:
    """One rule, and the capability a policy must declare for it to apply."""

    rule: Callable[[Policy], None]
    needs: str = ""

    @property
    def name(self) -> str:
        return self.rule.__name__

    def reason_to_skip(self, policy: Policy) -> str:
        """Why the check does not apply to this policy; empty if it does."""
        return f"{policy.name} declares {self.needs} = False" if not getattr(policy, self.needs, True) else ""


CHECKS = (
    Check(gives_k_distinct_items),
    Check(respects_candidates_and_hidden_items),
    Check(recommend_leaves_the_state_alone),
    Check(same_noise_gives_the_same_slate),
    Check(unexamined_positions_teach_nothing),
    Check(counts_one_unit_of_time_a_slate),
    Check(continues_after_save_and_load),
    Check(merged_shards_equal_the_whole_log, needs="mergeable"),
    Check(order_of_feedback_does_not_matter, needs="order_free"),
    Check(stays_finite_in_extremes),
    Check(relabelling_items_only_permutes_slates),
    Check(keeps_what_it_knows_when_items_are_added),
    Check(estimates_follow_what_is_observed),
    Check(beats_random_order, needs="learns"),
)


def checks_of(policy: Policy | str) -> list[tuple[Check, str]]:
    """Every check, with the reason to skip it for this policy, empty if it applies."""
    made = make_policy(policy)
    return [(check, check.reason_to_skip(made)) for check in CHECKS]


def check_policy(policy: Policy | str, *, report: Callable[[str], Any] = lambda line: None) -> None:
    """Every rule that applies holds for this policy, or AssertionError says which does not, and why."""
    made = make_policy(policy)
    for check, reason in checks_of(made):
        report(f"{check.name}: {'skipped, ' + reason if reason else 'checked'}")
        if not reason:
            check.rule(made)
