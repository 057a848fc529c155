"""Files, with checksums in order, whose states no log comes to: refused, or harmless. Kernels do not look."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve.log.snapshot import read_snapshot, write_snapshot
from firstclick.streams import stream
from tests.support.policies import OTHERS

ITEMS = [f"item {i}" for i in range(11)]
FEATURES = stream(5, "test features").random((11, 4)) / 3
K = 3


def rewritten(path, change):
    """The file with its page and arrays changed by hand."""
    with np.load(path) as file:
        arrays = dict(file)
    page = json.loads(arrays.pop("page").tobytes())
    change(page, arrays)
    np.savez(path, page=np.frombuffer(json.dumps(page).encode(), np.uint8), **arrays)
    return path


def saved(policy, folder, **request):
    ranker = Ranker(Catalog(ITEMS, FEATURES), k=K, policy=policy, seed=5)
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
    with pytest.raises(InvalidInput) as caught:
        Ranker.load(path)
    assert str(caught.value).startswith(f"{path}: {policy}: {sentence}")


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [
        ("cascade-lin-ts", {"sigma": 2.0}),
        ("cascade-lin-ts", {"sigma": 1}),
        ("cascade-hybrid:topics=2", {"topics": 10**9}),
        ("cascade-lsb", {"topics": 10**9}),
        ("cascade-swucb", {"window": 10**9}),
        ("cascade-lin-ucb", {"scale": "NaN"}),
    ],
)
def test_numbers_that_are_not_those_of_the_parameters_are_refused(tmp_path, policy, numbers):
    path = saved(policy, tmp_path)
    names = Ranker.load(path)._engine.numbers._fields

    def change(page, arrays):
        for name, value in numbers.items():
            page["numbers"][names.index(name)] = float("nan") if value == "NaN" else value

    rewritten(path, change)
    with pytest.raises(InvalidInput, match="damaged, or not written by this version of firstclick"):
        Ranker.load(path)


@OTHERS
def test_what_a_waiting_slate_was_shown_with_is_checked_as_at_the_door(tmp_path):
    path = saved("segment-lin-ts:segments=3", tmp_path, context=[2])
    assert len(Ranker.load(path).pending) == 1
    rewritten(path, lambda page, arrays: arrays["pending.contexts"].fill(7))
    with pytest.raises(InvalidInput, match="the context must be the number of a segment, 0 to 2, got 7"):
        Ranker.load(path)


def test_an_item_that_was_dropped_is_not_tried(tmp_path):
    """`learn` would look beyond the last slot."""
    path = saved("recur-rank", tmp_path)

    def change(page, arrays):
        arrays["state.block"][1], arrays["state.left"][1] = K, 26

    rewritten(path, change)
    with pytest.raises(InvalidInput, match="left must be 0 for items that were dropped"):
        Ranker.load(path)


def test_numbers_of_a_plug_in_may_follow_from_the_features_of_the_start(tmp_path):
    path = saved_by_a_plug_in(tmp_path)
    engine = Ranker.load(path)._engine
    assert engine.numbers.longest == pytest.approx(np.linalg.norm(engine.features[:5], axis=1).max())


def saved_by_a_plug_in(folder):
    class Scaled(CascadeLinTS):
        name = "scaled-of-the-test"
        derived = ("longest", "rank")

        def numbers(self, k, features):
            longest = np.linalg.norm(features, axis=1).max()  # NumPy's own number
            return self._pack(longest=longest, rank=int(np.linalg.matrix_rank(features[:2])) + len(features))

    ranker = Ranker(Catalog(ITEMS[:5], FEATURES[:5]), k=K, policy=Scaled(), seed=5)
    ranker.add_items(ITEMS[5:], FEATURES[5:])
    ranker.save(folder / "plug.npz")
    return folder / "plug.npz"


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
def test_features_of_a_file_are_checked_as_at_the_door(tmp_path, value):
    path = saved("cascade-lin-ts", tmp_path)
    rewritten(path, lambda page, arrays: arrays["features"].flat.__setitem__(5, value))
    with pytest.raises(InvalidInput, match="features must be"):
        Ranker.load(path)


# In a process where kernels are plain Python, which do look whether a row exists.
EVERY_ARRAY = """
import sys
from pathlib import Path
from tests.policies.test_states import *
from firstclick.errors import FirstclickError
from firstclick.registry import policy_classes

folder = Path(sys.argv[1])
for name in policy_classes():
    ranker = Ranker(Catalog(ITEMS, FEATURES), k=K, policy=name, seed=5)
    draw = stream(7, "clicks")
    for _ in range(30):
        ranker.learn(ranker.recommend(), click=int(draw.integers(K)) if draw.random() < 0.5 else None)
    ranker.save(folder / "good.npz")
    assert len(Ranker.load(folder / "good.npz").recommend()) == K, name
    refused = 0
    for array, like in ranker.state._asdict().items():
        bad = [np.nan, np.inf, -1e9] if like.dtype == np.float64 else [10**9, -(10**9), 1]
        for value in bad if like.size else []:
            for at in {0, like.size - 1}:
                path = folder / "bad.npz"
                path.write_bytes((folder / "good.npz").read_bytes())
                rewritten(path, lambda page, arrays: arrays[f"state.{array}"].flat.__setitem__(
                    at, np.array(value).astype(like.dtype)))
                try:
                    loaded = Ranker.load(path)
                except FirstclickError:
                    refused += 1
                    continue
                for step in range(4):
                    loaded.learn(loaded.recommend(), click=step if step < K else None)
    print(name, refused)
"""


# A refit under way says where kernels go on: every place of it, with what no refit comes to.
EVERY_PLACE_OF_A_REFIT = """
import sys
from pathlib import Path
from tests.policies.test_states import *
from firstclick.errors import FirstclickError
from firstclick.kernels.mixed import BETAS, FITS, STAGE

folder = Path(sys.argv[1])
ranker = Ranker(Catalog(ITEMS[:5], FEATURES[:5, :1]), k=K, seed=5)
for stage in (1, BETAS, FITS, FITS + 1):
    while ranker.state.refit[STAGE] != stage:
        ranker.learn(ranker.recommend(), click=None)
    ranker.save(folder / "good.npz")
    refused = 0
    for array in ("refit",) if stage < FITS else ("refit", "scale", "evidence", "next_columns", "columns"):
        for at in range(getattr(ranker.state, array).size):
            for value in (0.0, 0.5, 6.0, 1e9, 1e300, -1.0):
                path = folder / "bad.npz"
                path.write_bytes((folder / "good.npz").read_bytes())
                rewritten(path, lambda page, arrays: arrays[f"state.{array}"].flat.__setitem__(at, value))
                try:
                    loaded = Ranker.load(path)
                except FirstclickError:
                    refused += 1
                    continue
                for _ in range(2):
                    loaded.learn(loaded.recommend(), click=None)
    print(stage, refused)
"""


def in_plain_python(script, folder):
    """What a script says in a process where kernels look whether a row exists: a word and a number a line."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(folder)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {word: int(number) for word, number in map(str.split, done.stdout.splitlines())}


@pytest.mark.long
def test_no_array_of_any_policy_leads_a_kernel_beyond_its_end(tmp_path):
    refused = in_plain_python(EVERY_ARRAY, tmp_path)
    assert min(refused.values()) >= 1, refused


@pytest.mark.long
def test_no_place_of_a_refit_leads_a_kernel_beyond_its_end(tmp_path):
    refused = in_plain_python(EVERY_PLACE_OF_A_REFIT, tmp_path)
    assert len(refused) == 4
    assert min(refused.values()) >= 10, refused


def test_a_snapshot_out_of_range_is_passed_over(tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[1] / "serve"))
    from firstclick.serve.log.snapshot import BadSnapshot
    from firstclick.serve.model.model import Model
    from tests.support.made_log import Log

    log = Log("cascade-ts")
    page, arrays = read_snapshot(log.model.snapshot()[1])
    arrays["hits"][0] = 5
    with pytest.raises(BadSnapshot, match="hits must be at most examined, got 5 of 0"):
        Model.restored(1, "made", write_snapshot(page, arrays), log.created)
