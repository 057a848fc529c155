"""Several threads use one ranker: nothing is lost, and nothing is given twice."""

import sys
import threading

import numpy as np
import pytest

from firstclick import Catalog, Ranker

THREADS, STEPS = 4, 150


@pytest.fixture(autouse=True)
def hasty():
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_threads_share_a_ranker(policy):
    features = np.random.default_rng(1).random((40, 3))
    ranker = Ranker(Catalog(range(40), features), k=3, policy=policy, seed=1)
    ids = []
    wrong = []

    def work(number):
        try:
            for step in range(STEPS):
                slate = ranker.recommend(exclude=[step % 40])
                ids.append(slate.id)
                ranker.learn(slate, clicks=range(3), examined=3)
                if step % 50 == 10:
                    ranker.add_items([f"{number} {step}"], features[:1])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert len(set(ids)) == ranker.requests == THREADS * STEPS
    assert not ranker.pending
    assert ranker.state.time[0] == THREADS * STEPS
    if policy == "cascade-ts":
        assert ranker.state.hits.sum() == ranker.state.examined.sum() == 3 * THREADS * STEPS
    else:
        assert ranker.state.observations[0] == 3 * THREADS * STEPS
        factor = ranker.state.factor
        np.testing.assert_allclose(factor.T @ factor, ranker.state.precision, rtol=1e-9)


def test_rankers_that_merge_both_ways_at_once_do_not_wait_for_each_other():
    one, two = (Ranker(Catalog(range(9)), k=2, seed=seed) for seed in (1, 2))
    merging = [
        threading.Thread(target=lambda a=a, b=b: [a.merge(b) for _ in range(100)], daemon=True)
        for a, b in ((one, two), (two, one))
    ]
    for thread in merging:
        thread.start()
    for thread in merging:
        thread.join(60)
        assert not thread.is_alive()
