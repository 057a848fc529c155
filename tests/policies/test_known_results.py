"""Figures of the literature, and the paper's main claims on real data."""

import numpy as np
import pytest

from firstclick import make_world, simulate
from firstclick.data import FeedbackScenario, feedback_matrix, read_interactions

# Expected regret after 100,000 steps in B_LB(L, K, 0.2, gap) (mean, standard error; UCB1 then KL-UCB), by
# implementations that share no code with this one: a C program with 20 runs, and for (16, 8) a vectorised
# NumPy script with 200 runs (UCB1) and Table 1 of Kveton et al. 2015 (KL-UCB). All: docs/research/results.md.
TABLE_1 = {
    (16, 2, 0.15): ((1289.7, 6.5), (349.8, 4.2)),
    (16, 4, 0.15): ((994.9, 7.0), (267.3, 4.7)),
    (16, 2, 0.075): ((2063.3, 21.2), (730.6, 11.0)),
    (32, 2, 0.15): ((2715.2, 11.8), (757.3, 8.3)),
    (16, 8, 0.15): ((549.7, 1.3), (149.1, 3.2)),
}


@pytest.mark.long
@pytest.mark.parametrize(("n_items", "k", "gap"), TABLE_1)
def test_table_1_of_kveton_et_al(n_items, k, gap):
    """4 combined standard errors. They are estimated from few runs, so a figure gives a false alarm once in
    3,600 choices of the seed (t distributions, by simulation)."""
    world = make_world(f"blb:n_items={n_items},k={k},p=0.2,gap={gap}").build(0)
    seed = int(n_items * 100_000 + k * 1000 + gap * 1000)  # rows share no users
    results = simulate(
        ["cascade-ucb1", "cascade-kl-ucb"], world, k=k, steps=100_000, runs=20, seed=seed, jobs=2
    )
    for result, (mean, stderr) in zip(results.results, TABLE_1[n_items, k, gap], strict=True):
        ours = result.final("expected_regret")
        assert abs(ours["mean"] - mean) < 4 * np.hypot(ours["stderr"], stderr), result.policy


@pytest.mark.long
def test_regret_of_lin_ts_does_not_grow_with_the_number_of_items_and_that_of_ucb1_does(movielens_1m):
    read = read_interactions(movielens_1m / "ratings.dat", value_column=2, above=3)
    matrix = feedback_matrix(read)
    regret = {}
    for n_items in (16, 256, 3706):
        results = simulate(
            ["cascade-lin-ts", "ranked-lin-ts", "cascade-ucb1"],
            FeedbackScenario(matrix, rank=20, n_items=n_items),
            k=4, steps=100_000, runs=10, seed=1, jobs=2,
        )  # fmt: skip
        regret[n_items] = {r.policy: r.final("expected_regret")["mean"] for r in results.results}
    lin_ts = [regret[n]["cascade-lin-ts"] for n in regret]
    assert max(lin_ts) < 2 * min(lin_ts)
    assert all(regret[n]["ranked-lin-ts"] > regret[n]["cascade-lin-ts"] for n in regret)
    assert regret[3706]["cascade-ucb1"] > 10 * regret[16]["cascade-ucb1"]
