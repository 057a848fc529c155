"""Files, with checksums in order, whose states no log comes to: refusal, or harmless. Kernels do not look."""

import os
import subprocess
import sys

import numpy as np
import pytest

from firstclick import Catalog, FirstclickError, Ranker, policy_classes
from firstclick.kernels.mixed import BETAS, FITS, STAGE
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve.log.snapshot import BadSnapshot, read_snapshot, write_snapshot
from firstclick.serve.model.model import Model
from tests.online.rankers import refusal, rewritten
from tests.support.made_log import Log
from tests.support.policies import OTHERS

ITEMS = [f"item {i}" for i in range(11)]
FEATURES = np.random.default_rng(5).random((11, 4)) / 3
K = 3


def saved(policy, folder, *, clicks=0, **request):
    """The file of a ranker that has learned from so many slates and waits for the one of this request."""
    ranker, draw = Ranker(Catalog(ITEMS, FEATURES), k=K, policy=policy, seed=5), np.random.default_rng(7)
    for _ in range(clicks):
        ranker.learn(ranker.recommend(), click=int(draw.integers(K)) if draw.random() < 0.5 else None)
    if request:
        ranker.recommend(**request)
    ranker.save(folder / "r.npz")
    return folder / "r.npz"


# Each of the first five crashed the process at its first recommendation or click.
@pytest.mark.parametrize(
    ("policy", "array", "value", "sentence"),
    [
        ("cascade-swucb", "shown", 10**9, "shown must lie between -1 and 10, got 1000000000"),
        ("batch-rank", "batch", 10**9, "batch must lie between 0 and 3, got 1000000000"),
        ("bubble-rank", "place", 10**9, "place must lie between 0 and 10, got 1000000000"),
        ("recur-rank", "block", 10**9, "block must lie between 0 and 3, got 1000000000"),
        ("cascade-glr-ucb", "examined", 10**9, "examined // step must be at most the number of cuts"),
        ("bubble-rank", "place", 4, "place must be another for each item, got one twice"),
        ("cascade-swucb", "examined", 1, "examined must be what the slates of its window come to"),
        ("cascade-ts", "hits", 1, "hits must be at most examined, got 1 of 0"),
        ("cascade-ts", "examined", -1, "examined must lie between 0 and 9007199254740992, got -1"),
        ("cascade-lin-ts", "factor", 0, "the diagonal of factor must lie between"),
        ("cascade-lin-ts", "moment", np.nan, "moment must lie between"),
        ("pbm-ucb", "examination", 1.5, "examination must lie between 0 and 1, got 1.5"),
        ("cascade-mixed", "examined", 2.0**54, "examined must lie between 0 and 9007199254740992"),
        ("cascade-mixed", "hits", 0.25, "hits must be at most examined, got 0.25 of 0.0"),
        ("cascade-mixed", "past_hits", 1, "past_hits must be at most past_examined, got 1.0 of 0.0"),
        ("cascade-mixed", "factor", 0, "the diagonal of factor must lie between"),
        ("cascade-mixed", "scale", 0, "p in scale must lie between"),
    ],
)
def test_an_array_out_of_its_range_is_refused(tmp_path, policy, array, value, sentence):
    path = saved(policy, tmp_path)
    rewritten(path, lambda page, arrays: arrays[f"state.{array}"].flat.__setitem__(0, value))
    assert str(refusal(Ranker.load, path)).startswith(f"{path}: {policy}: {sentence}")


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [
        ("cascade-lin-ts", {"sigma": 2.0}),
        ("cascade-lin-ts", {"sigma": 1}),
        ("cascade-hybrid:topics=2", {"topics": 10**9}),
        ("cascade-lsb", {"topics": 10**9}),
        ("cascade-swucb", {"window": 10**9}),
        ("cascade-lin-ucb", {"scale": float("nan")}),
    ],
)
def test_numbers_that_are_not_those_of_the_parameters_are_refused(tmp_path, policy, numbers):
    path = saved(policy, tmp_path)
    names = Ranker.load(path)._engine.numbers._fields

    def change(page, arrays):
        for name, value in numbers.items():
            page["numbers"][names.index(name)] = value

    assert "damaged" in str(refusal(Ranker.load, rewritten(path, change)))


def dropped_item_is_tried(page, arrays):
    """`learn` would look beyond the last slot."""
    arrays["state.block"][1], arrays["state.left"][1] = K, 26


def put_feature(value):
    return lambda page, arrays: arrays["features"].flat.__setitem__(5, value)


def put_segment(page, arrays):
    arrays["pending.contexts"].fill(7)


@pytest.mark.parametrize(
    ("policy", "request_", "change", "reason"),
    [
        pytest.param("segment-lin-ts:segments=3", {"context": [2]}, put_segment, "got 7", marks=OTHERS),
        ("recur-rank", {}, dropped_item_is_tried, "left must be 0 for items that were dropped"),
        *(("cascade-lin-ts", {}, put_feature(value), "features") for value in (np.inf, np.nan, 1e200)),
    ],
)
def test_what_a_file_holds_is_checked_as_at_the_door(tmp_path, policy, request_, change, reason):
    path = saved(policy, tmp_path, **request_)
    assert len(Ranker.load(path).pending) == bool(request_)
    assert reason in str(refusal(Ranker.load, rewritten(path, change)))


def test_numbers_of_a_plug_in_may_follow_from_the_features_of_the_start(tmp_path):
    class Scaled(CascadeLinTS):
        name = "scaled-of-the-test"
        derived = ("longest", "rank")

        def numbers(self, k, features):
            longest = np.linalg.norm(features, axis=1).max()  # NumPy's own number
            return self._pack(longest=longest, rank=int(np.linalg.matrix_rank(features[:2])) + len(features))

    ranker = Ranker(Catalog(ITEMS[:5], FEATURES[:5]), k=K, policy=Scaled(), seed=5)
    ranker.add_items(ITEMS[5:], FEATURES[5:])
    ranker.save(tmp_path / "plug.npz")
    engine = Ranker.load(tmp_path / "plug.npz")._engine
    assert engine.numbers.longest == pytest.approx(np.linalg.norm(engine.features[:5], axis=1).max())


def refusals_of(path, good, changes, play):
    """How many of these changes to a file are refused; the other files are loaded and played."""
    count = 0
    for change in changes:
        path.write_bytes(good)
        try:
            loaded = Ranker.load(rewritten(path, change))
        except FirstclickError:
            count += 1
        else:
            play(loaded)
    return count


def put(array, at, value):
    def change(page, arrays):
        held = arrays[f"state.{array}"]
        held.flat[at] = np.array(value).astype(held.dtype)

    return change


def play(ranker, steps=4):
    for step in range(steps):
        ranker.learn(ranker.recommend(), click=step if step < min(steps - 1, K) else None)


def every_array(folder):
    """Every array of every policy, with what no log comes to."""
    for name in policy_classes():
        path = saved(name, folder, clicks=30)
        good, changes = path.read_bytes(), []
        for array, like in Ranker.load(path).state._asdict().items():
            bad = [np.nan, np.inf, -1e9] if like.dtype == np.float64 else [10**9, -(10**9), 1]
            places = {0, like.size - 1} if like.size else ()
            changes += [put(array, at, value) for value in bad for at in places]
        print(name, refusals_of(path, good, changes, play))


def every_place_of_a_refit(folder):
    """A refit under way says where kernels go on: every place of it, with what no refit comes to."""
    ranker = Ranker(Catalog(ITEMS[:5], FEATURES[:5, :1]), k=K, seed=5)
    for stage in (1, BETAS, FITS, FITS + 1):
        while ranker.state.refit[STAGE] != stage:
            ranker.learn(ranker.recommend(), click=None)
        path = folder / "good.npz"
        ranker.save(path)
        arrays = ("refit",) if stage < FITS else ("refit", "scale", "evidence", "next_columns", "columns")
        changes = [
            put(array, at, value)
            for array in arrays
            for at in range(getattr(ranker.state, array).size)
            for value in (0.0, 0.5, 6.0, 1e9, 1e300, -1.0)
        ]
        print(stage, refusals_of(path, path.read_bytes(), changes, lambda loaded: play(loaded, 2)))


def in_plain_python(function, folder):
    """The lines of a process where kernels look whether a row exists: a word and a number."""
    code = (
        "import sys; from pathlib import Path; from tests.policies import test_states; "
        f"test_states.{function.__name__}(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {word: int(number) for word, number in map(str.split, done.stdout.splitlines())}


@pytest.mark.long
def test_no_array_of_any_policy_leads_a_kernel_beyond_its_end(tmp_path):
    refusals = in_plain_python(every_array, tmp_path)
    assert len(refusals) > 30
    assert min(refusals.values()) >= 1, refusals


@pytest.mark.long
def test_no_place_of_a_refit_leads_a_kernel_beyond_its_end(tmp_path):
    refusals = in_plain_python(every_place_of_a_refit, tmp_path)
    assert len(refusals) == 4
    assert min(refusals.values()) >= 10, refusals


def test_a_snapshot_out_of_range_is_passed_over():
    log = Log("cascade-ts")
    page, arrays = read_snapshot(log.model.snapshot()[1])
    arrays["hits"][0] = 5
    with pytest.raises(BadSnapshot, match="hits must be at most examined, got 5 of 0"):
        Model.restored(1, "made", write_snapshot(page, arrays), log.created)
