"""A ranker in a program: recommend, learn, add, withdraw, save, load, merge."""

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from firstclick import Catalog, Ranker, Slate, make_policy, policy_classes
from firstclick.errors import (
    DuplicateFeedback,
    ForgottenSlate,
    InvalidInput,
    UnknownName,
    UnknownSlate,
    WorkFailed,
)
from firstclick.files.arrays import read_arrays, write_arrays
from firstclick.online import slate_record
from firstclick.online.file import FORMAT
from firstclick.policies.cascade_ucb1 import CascadeUCB1
from firstclick.streams import stream
from tests.support.policies import OTHERS, policies

N_ITEMS, N_FEATURES, K = 11, 4, 3
ITEMS = ["p3", 30, "", "p9", 9, "Grüße", "nan", 1000, "p40", -7, "z" * 500]
FEATURES = np.abs(stream(8, "test features").normal(size=(N_ITEMS, N_FEATURES))) / 3
# One of each kind of state and of shortcut; the conformance checks try all policies.
OURS = [
    "cascade-kl-ucb", "cascade-lin-ts", "cascade-lin-ucb", "cascade-ts", "cascade-ucb1", "random",
    "ranked-lin-ts",
]  # fmt: skip
WITHOUT_FEATURES = [name for name in OURS if not policy_classes()[name].needs_features]
every_policy = pytest.mark.parametrize(
    "policy", policies([*OURS, "cascade-lin-ucb:c=theory,horizon=900", "cascade-lin-ts:sigma=0.3"])
)


def new_ranker(policy="cascade-lin-ts", *, seed=5, **options):
    return Ranker(Catalog(ITEMS, FEATURES), policy=policy, **{"k": K, "seed": seed, **options})


def teach(ranker, steps, seed=1):
    """Some users, who like items of even rows."""
    draw = stream(seed, "users")
    for _ in range(steps):
        slate = ranker.recommend()
        liked = [i for i, item in enumerate(slate.items) if ranker.catalog.rows([item])[0] % 2 == 0]
        ranker.learn(slate, click=liked[0] if liked and draw.random() < 0.6 else None)
    return ranker


def same_state(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first.state, second.state, strict=True))


def copy_of_state(ranker):
    return [array.copy() for array in ranker.state]


def refusal(call, *args, error=InvalidInput, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@every_policy
def test_recommending_leaves_the_state_alone(policy):
    ranker = teach(new_ranker(policy), 20)
    before = copy_of_state(ranker)
    for _ in range(5):
        ranker.recommend(exclude=["p9"])
    assert all(np.array_equal(a, b) for a, b in zip(before, ranker.state, strict=True))


@every_policy
def test_a_ranker_is_a_function_of_its_seed_and_what_it_was_told(policy):
    one, same, other = (teach(new_ranker(policy, seed=seed), 40) for seed in (5, 5, 6))
    assert same_state(one, same)
    slates = [[ranker.recommend().items for _ in range(10)] for ranker in (one, same, other)]
    assert slates[0] == slates[1]
    # Without noise and without ties the seed has nothing to decide.
    assert (slates[0] == slates[2]) == policy.startswith("cascade-lin-ucb")


def test_only_so_many_slates_wait_and_the_oldest_is_forgotten():
    ranker = new_ranker("random", max_pending=2)
    oldest, middle, latest = (ranker.recommend() for _ in range(3))
    assert refusal(ranker.learn, oldest, click=0) == (
        f"slate {oldest.id!r} is not waiting for feedback: it was forgotten (the last 2 are kept); to keep "
        "more, set `max_pending`"
    )
    ranker.learn(latest, click=0)
    ranker.learn(middle, click=None)


# What became of a slate


def fates(ranker, slates):
    """The class of the error for each slate; None where it is learned."""
    found = []
    for slate in slates:
        try:
            ranker.learn(slate.id, click=None)
            found.append(None)
        except InvalidInput as error:
            found.append(type(error))
    return found


def test_duplicate_forgotten_and_unknown_slates_are_three_errors():
    ranker = new_ranker("random", max_pending=3)
    learned, forgotten, other_forgotten = (ranker.recommend() for _ in range(3))
    ranker.learn(learned, click=1)
    waiting = [ranker.recommend() for _ in range(3)]
    ranker.learn(waiting[1], click=0)
    waiting.append(ranker.recommend())
    stranger = new_ranker("random", seed=77).recommend()
    nonsense = [Slate(text, ()) for text in ("", "x", "-", "0" * 16 + "-1", "x" * 16 + "-r-1", "1-2-3-4")]
    kinds = fates(ranker, [learned, forgotten, other_forgotten, *waiting, stranger, *nonsense])
    assert kinds == [
        DuplicateFeedback, ForgottenSlate, ForgottenSlate, None, DuplicateFeedback, None, None,
        *[UnknownSlate] * 7,
    ]  # fmt: skip
    assert fates(ranker, waiting) == [DuplicateFeedback] * 4


@pytest.mark.parametrize("way", ["save", "copy", "deepcopy", "pickle", "merge", "merge and save", "twice"])
def test_what_became_of_a_slate_is_known_after(way, tmp_path):
    draw = stream(4, way)
    ranker = new_ranker("random", max_pending=4)
    expected = {}
    shown = []

    def some_slates(ranker):
        for _ in range(40):
            shown.append(ranker.recommend())
            if draw.random() < 0.6 and ranker.pending:
                chosen = str(draw.choice(list(ranker.pending)))
                ranker.learn(chosen, click=None)
                expected[chosen] = DuplicateFeedback

    some_slates(ranker)
    for _ in range(2 if way == "twice" else 1):
        if "merge" in way:
            ranker = new_ranker("random", seed=6).merge(ranker)
        if "save" in way or way == "twice":
            ranker.save(tmp_path / "r.npz")
            after = ranker.recommend()
            ranker = Ranker.load(tmp_path / "r.npz")
            assert fates(ranker, [after]) == [UnknownSlate]
        if "copy" in way:
            other = getattr(copy, way)(ranker)
            assert fates(other, [new_ranker("random").recommend()]) == [UnknownSlate]
            ranker = other
        if way == "pickle":
            ranker = pickle.loads(pickle.dumps(ranker))
        # Those of before are forgotten and learned by the new one too.
        ranker.max_pending = 4
        some_slates(ranker)
    waiting = set(ranker.pending)
    told = dict(zip([slate.id for slate in shown], fates(ranker, shown), strict=True))
    for slate in shown:
        wanted = None if slate.id in waiting else expected.get(slate.id, ForgottenSlate)
        assert told[slate.id] == wanted
    assert {None, DuplicateFeedback, ForgottenSlate} == set(told.values())


def test_the_record_of_slates_takes_little_room(monkeypatch):
    monkeypatch.setattr(slate_record, "MOST_RECORDED", 800)
    ranker = new_ranker("random", max_pending=1)
    slates = [ranker.recommend() for _ in range(3000)]
    (record,) = ranker._records.values()
    assert len(record.forgotten) <= 100
    assert fates(ranker, slates[-390:]) == [*[ForgottenSlate] * 389, None]
    assert "too old to know which" in refusal(ranker.learn, slates[0], click=0, error=ForgottenSlate)
    # A number far away, as of a ranker that has counted to it, takes no room either.
    record.forget(2**61)
    assert len(record.forgotten) <= 100
    assert record.fate("", 5) is slate_record.Fate.NEVER_SHOWN


@pytest.mark.parametrize(
    "change",
    [
        lambda page, arrays: page["records"][0].__setitem__(2, -1),
        lambda page, arrays: page["records"][0].__setitem__(3, 1000),
        lambda page, arrays: page["records"][0].__setitem__(3, 0),
        lambda page, arrays: page["records"].append(page["records"][0]),
        lambda page, arrays: page["records"].append([9, {"a": -1}, 0, 0]),
        lambda page, arrays: arrays.update(forgotten=np.zeros(1)),
        lambda page, arrays: arrays.pop("forgotten"),
    ],
)
def test_a_damaged_record_of_slates_is_refused(change, tmp_path):
    ranker = new_ranker("random", max_pending=1)
    for _ in range(9):
        ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    rewrite(tmp_path / "r.npz", change)
    assert "r.npz" in refusal(Ranker.load, tmp_path / "r.npz")


# Estimates


def test_estimates_take_ids_in_any_form():
    ranker = teach(new_ranker(), 20)
    means, deviations = ranker.estimates(["p3", 30])
    for same in (("p3", 30), iter(["p3", 30]), Slate("a", ("p3", 30)), ranker.catalog.subset(["p3", 30])):
        again = ranker.estimates(same)
        assert (again[0].tolist(), again[1].tolist()) == (means.tolist(), deviations.tolist())
    assert ranker.estimates(np.array([30, 9]))[0][0] == means[1]
    assert [len(part) for part in ranker.estimates([])] == [0, 0]
    assert refusal(ranker.estimates, [40], error=UnknownName).startswith(
        "items must name items of the catalog, got 40"
    )
    assert refusal(ranker.estimates, ["30"], error=UnknownName).endswith("did you mean 30?")


@OTHERS
def test_a_slate_of_another_ranker_is_refused_even_if_both_have_one_seed():
    catalog = Catalog(ITEMS, FEATURES)
    ours, twin = (Ranker(catalog, k=K, policy="cascade-ucb1", seed=0) for _ in range(2))
    theirs = Ranker(catalog, k=K, policy="cascade-ts", seed=0)
    wider = Ranker(catalog, k=K + 1, policy="cascade-ucb1", seed=0)
    waiting = ours.recommend()
    for other in (theirs, wider):
        assert "it is not of this ranker" in refusal(ours.learn, other.recommend(), click=0)
    assert "by a copy of this ranker" in refusal(ours.learn, twin.recommend(), click=0)
    forged = Slate(id=waiting.id, items=twin.recommend(exclude=waiting.items).items)
    assert refusal(ours.learn, forged, click=0) == (
        f"slate {waiting.id!r} is not of this ranker, which showed {waiting.items}"
    )
    ours.learn(waiting, click=0)
    assert refusal(ours.learn, None, click=0).startswith("slate must be a slate from recommend")


def test_a_slate_whose_item_was_withdrawn_and_came_back_otherwise_is_learned_as_it_was_shown():
    ranker, still = new_ranker(), new_ranker()
    slate = ranker.recommend()
    same = still.recommend()
    assert slate.items == same.items
    ranker.withdraw_items(slate.items)
    ranker.add_items(slate.items, np.full((K, N_FEATURES), 0.9))
    ranker.learn(slate, click=2)
    still.learn(same, click=2)
    assert same_state(ranker, still)
    assert ranker.catalog.rows(slate.items).tolist() == [N_ITEMS, N_ITEMS + 1, N_ITEMS + 2]
    assert len(ranker.catalog) == N_ITEMS


@OTHERS
def test_an_item_that_comes_back_is_new_to_a_policy_without_features():
    ranker = teach(new_ranker("cascade-ucb1"), 60)
    assert ranker.state.examined[0] > 0
    slate = ranker.recommend(candidates=["p3"])
    ranker.withdraw_items(["p3"])
    ranker.add_items(["p3"], [[0.5] * N_FEATURES])
    examined = ranker.state.examined[0]
    ranker.learn(slate, click=0)
    assert ranker.state.examined[[0, N_ITEMS]].tolist() == [examined + 1, 0]
    assert ranker.recommend().items[0] == "p3"


@pytest.mark.parametrize("policy", policies(["cascade-ucb1", "cascade-kl-ucb", "cascade-ucb1:start=first"]))
def test_confidence_bounds_rank_unseen_items_first_in_live_use(policy):
    ranker = new_ranker(policy)
    shown = []
    for _ in range(N_ITEMS // K):
        slate = ranker.recommend()
        shown += slate.items
        ranker.learn(slate, click=None)
    assert len(set(shown)) == len(shown) == 9
    assert set(ITEMS) - set(shown) < set(ranker.recommend().items)


@OTHERS
def test_pessimistic_bounds_do_not():
    ranker = teach(new_ranker("cascade-ucb1:start=pessimistic,radius=0.0001"), 1)
    slate = ranker.recommend()
    ranker.learn(slate, click=0)
    assert ranker.recommend().items[0] == slate.items[0]


@OTHERS
def test_c_of_the_theorem_refuses_longer_features_later_by_whichever_door():
    policy = "cascade-lin-ucb:c=theory,horizon=100"
    ranker = Ranker(Catalog(["a", "b"], [[3.0, 4.0], [0.5, 0.5]]), k=1, policy=policy)
    ranker.add_items(["as long"], [[0.0, 5.0]])
    sentence = (
        "features must have a norm of at most 1 for cascade-lin-ucb with c=theory, got 1.105; "
        "start a new ranker with these items"
    )
    assert refusal(ranker.add_items, ["longer"], [[0.0, 6.0]]) == sentence
    assert len(ranker.catalog) == 3
    Ranker(ranker.catalog, k=1, policy="cascade-lin-ucb").add_items(["longer"], [[0.0, 6.0]])
    assert refusal(ranker.recommend) == sentence


@every_policy
def test_rankers_that_share_a_catalog_all_see_what_is_added_and_withdrawn(policy, tmp_path):
    """A kernel does not look whether a row exists: a state too small would be read beyond its end."""
    catalog = Catalog(ITEMS, FEATURES)
    one, two = (teach(Ranker(catalog, k=K, policy=policy, seed=seed), 12) for seed in (1, 2))
    one.add_items(["new"], [[0.4] * N_FEATURES])
    catalog.add(["newer"], [[0.3] * N_FEATURES])
    catalog.withdraw(ITEMS)
    assert set(one.recommend().items) == set(two.recommend().items) == {"new", "newer"}
    catalog.add(["newest"], [[0.2] * N_FEATURES])
    one.save(tmp_path / "one.npz")
    for ranker in (Ranker.load(tmp_path / "one.npz"), one.merge(two)):
        slate = ranker.recommend()
        assert set(slate.items) == {"new", "newer", "newest"}
        ranker.learn(slate, click=1)
        assert all(len(array) in (1, K, N_FEATURES + 1, N_ITEMS + 3) for array in ranker.state)


@pytest.mark.parametrize("policy", policies(WITHOUT_FEATURES))
def test_policies_without_features_do_not_care_whether_there_are_any(policy):
    plain, with_features = Ranker(Catalog(ITEMS), k=K, policy=policy, seed=5), new_ranker(policy)
    teach(plain, 50), teach(with_features, 50)
    assert same_state(plain, with_features)
    plain.add_items(["new"])
    with_features.add_items(["new"], [[9.0] * N_FEATURES])
    assert [plain.recommend().items for _ in range(9)] == [with_features.recommend().items for _ in range(9)]


def test_a_ranker_keeps_the_largest_seed_there_is(tmp_path):
    ranker = new_ranker("random", seed=2**256 - 1)
    ranker.save(tmp_path / "r.npz")
    assert Ranker.load(tmp_path / "r.npz").recommend().items == ranker.recommend().items


@pytest.mark.parametrize("path", [None, 3, b"r.npz", "", ["r.npz"]])
def test_a_ranker_is_saved_to_and_loaded_from_a_path(path):
    sentence = f"a path must be a text that is not empty, or a Path, got {path!r}; name a file or a folder"
    assert refusal(new_ranker().save, path) == sentence
    assert refusal(Ranker.load, path) == sentence


def test_a_file_with_a_number_that_no_array_can_hold_is_refused(tmp_path):
    ranker = new_ranker()
    slate = ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    page, arrays = read_arrays(tmp_path / "r.npz", FORMAT)
    assert page["pending"] == [[slate.id, page["pending"][0][1], False]]
    page["pending"][0][1][0] = 10**30
    write_arrays(tmp_path / "r.npz", page, arrays)
    assert "damaged, or not written by this version of firstclick" in refusal(Ranker.load, tmp_path / "r.npz")


def test_k_may_be_all_items_and_counts_only_those_that_can_be_shown():
    assert len(new_ranker("random", k=np.int64(N_ITEMS)).recommend()) == N_ITEMS
    catalog = Catalog(ITEMS)
    catalog.withdraw([9, 30])
    assert (
        refusal(Ranker, catalog, k=10, policy="random") == "k must be at most 9, the items there are, got 10"
    )


@OTHERS
def test_a_ranker_tells_what_it_is():
    ranker = new_ranker("cascade-ucb1:radius=0.5")
    ranker.withdraw_items([9])
    assert repr(ranker) == "Ranker('cascade-ucb1:radius=0.5', 10 items, k=3)"
    assert ranker.recommend() != ranker.recommend()


# Saving and loading


def mixed_steps(ranker, first, last):
    """Whatever can happen, decided by the step alone; what the ranker answered."""
    answers = []
    for step in range(first, last):
        draw = stream(77, "step", step)
        kind = draw.integers(10)
        if kind == 0:
            features = None if ranker.catalog.n_features is None else draw.random((1, N_FEATURES)) / 3
            ranker.add_items([f"added {step}"], features)
        elif kind == 1 and len(ranker.catalog) > 2 * K:
            shown = [
                item
                for item, hidden in zip(ranker.catalog.items, ranker.catalog.hidden, strict=True)
                if not hidden
            ]
            ranker.withdraw_items([shown[int(draw.integers(len(shown)))]])
        elif kind in (2, 3):
            answers.append(ranker.recommend(exclude=ITEMS[step % 5 : step % 5 + 3]).items)
        else:
            answers.append(ranker.recommend(candidates=ITEMS[::2] if kind == 4 else None).items)
        while len(ranker.pending) > 4:
            waiting = list(ranker.pending)
            slate = waiting[int(draw.integers(len(waiting)))]
            size = len(ranker.pending[slate].rows)
            ranker.learn(slate, click=int(draw.integers(size)) if size and draw.random() < 0.4 else None)
    return answers


@every_policy
def test_a_loaded_ranker_goes_on_bit_for_bit_with_the_slates_that_waited(policy, tmp_path):
    whole, saved = new_ranker(policy), new_ranker(policy)
    mixed_steps(whole, 0, 60), mixed_steps(saved, 0, 60)
    saved.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert len(loaded.pending) == 4
    assert loaded.catalog.items == whole.catalog.items
    assert [type(item) for item in loaded.catalog.items] == [type(item) for item in whole.catalog.items]
    assert (loaded.policy, loaded.k, loaded.seed) == (whole.policy, K, 5)
    assert (loaded._engine.numbers, loaded._engine.scale) == (whole._engine.numbers, whole._engine.scale)
    assert mixed_steps(loaded, 60, 260) == mixed_steps(whole, 60, 260)
    assert same_state(loaded, whole)
    # Saved again after the same history, all is the same but the ids of slates.
    for ranker, name in ((whole, "a.npz"), (loaded, "b.npz")):
        ranker.save(tmp_path / name)
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        assert all(a[name].tobytes() == b[name].tobytes() for name in a.files if name != "page")
        pages = [json.loads(file["page"].tobytes()) for file in (a, b)]
    waiting = [[entry[1:] for entry in page.pop("pending")] for page in pages]
    assert [len(page.pop("made")) for page in pages] == [len(waiting[0])] * 2, "when they were shown"
    runs = [page["records"][0].pop(1) for page in pages]
    assert list(runs[0].values()) == [whole.requests]
    assert len(runs[1]) == 2, "that of the file, and its own"
    assert (pages[0], waiting[0]) == (pages[1], waiting[1])


def test_a_ranker_goes_on_in_another_process(tmp_path):
    ranker = teach(new_ranker(), 50)
    waiting = ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    code = (
        "import sys, json; from firstclick import Ranker; r = Ranker.load(sys.argv[1]); "
        "r.learn(sys.argv[2], click=1); s = [r.recommend() for _ in range(5)]; r.save(sys.argv[1]); "
        "print(json.dumps([t.items for t in s]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r.npz"), waiting.id],
        env=os.environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    ranker.learn(waiting, click=1)
    assert json.loads(done.stdout) == [list(ranker.recommend().items) for _ in range(5)]
    assert same_state(Ranker.load(tmp_path / "r.npz"), ranker)


def test_no_id_is_given_twice_and_a_stale_one_has_an_error_of_its_own(tmp_path):
    """After a crash the file is older than some slates that are out: their clicks are for no other slate."""
    ranker = new_ranker()
    kept, learned = ranker.recommend(), ranker.recommend()
    ranker.learn(learned, click=0)
    ranker.save(tmp_path / "r.npz")
    lost = [ranker.recommend() for _ in range(3)]
    loaded, twice = Ranker.load(tmp_path / "r.npz"), Ranker.load(tmp_path / "r.npz")
    fresh = [loaded.recommend() for _ in range(3)]
    assert [slate.items for slate in fresh] == [slate.items for slate in lost], "the same numbers as before"
    assert not {slate.id for slate in fresh} & {slate.id for slate in lost}
    before = copy_of_state(loaded)
    for stale in (*lost, twice.recommend()):
        assert "was shown after the file was saved" in refusal(loaded.learn, stale.id, click=1)
    assert "learned already" in refusal(loaded.learn, learned.id, click=1)
    assert "not of this ranker" in refusal(loaded.learn, "0123456789abcdef-1-1", click=1)
    assert all(np.array_equal(a, b) for a, b in zip(before, loaded.state, strict=True))
    loaded.learn(kept.id, click=1)
    loaded.learn(fresh[1].id, click=1)
    assert loaded.state.time[0] == 3


def test_a_stale_id_is_told_apart_after_many_loads_too(tmp_path):
    path = tmp_path / "r.npz"
    ranker = new_ranker()
    learned = ranker.recommend()
    ranker.learn(learned, click=0)
    ranker.save(path)
    lost = ranker.recommend()
    for _ in range(3):
        ranker = Ranker.load(path)
        for _ in range(5):
            ranker.recommend()
        ranker.save(path)
    ranker = Ranker.load(path)
    assert "was shown after the file was saved" in refusal(ranker.learn, lost.id, click=0)
    assert "learned already" in refusal(ranker.learn, learned.id, click=0)


def test_a_slate_of_a_parent_is_learned_once_after_a_merge():
    one, two = new_ranker(seed=1), new_ranker(seed=2)
    slate = one.recommend()
    merged = one.merge(two)
    merged.learn(slate.id, click=0)
    assert "it was learned already" in refusal(merged.learn, slate.id, click=0, error=DuplicateFeedback)


def test_a_new_ranker_of_the_same_seed_and_a_copy_give_other_ids():
    ranker = new_ranker()
    others = [new_ranker(), copy.copy(ranker), copy.deepcopy(ranker)]
    assert len({one.recommend().id for one in (ranker, *others)}) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_gives_other_ids():
    """As the workers of a web server are made of one that has loaded everything."""
    code = (
        "import os, sys; from firstclick import Catalog, Ranker; "
        "r = Ranker(Catalog(range(9)), k=2, policy='random'); r.recommend(); child = os.fork(); "
        "os.write(1, (r.recommend().id + '\\n').encode()); child and os.wait()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ids = done.stdout.split()
    assert len(set(ids)) == 2, ids


def test_a_catalog_without_features_comes_back_without(tmp_path):
    Ranker(Catalog(ITEMS), k=2, policy="cascade-ts:a=0.3").save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert loaded.catalog.features is None
    assert loaded.policy == make_policy("cascade-ts:a=0.3")
    loaded.add_items(["new"])
    assert len(loaded.recommend()) == 2


def rewrite(path, change):
    """The file with its page and arrays changed by hand, checksums in order."""
    with np.load(path) as file:
        arrays = dict(file)
    page = json.loads(arrays.pop("page").tobytes())
    change(page, arrays)
    np.savez(path, page=np.frombuffer(json.dumps(page).encode(), np.uint8), **arrays)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "r.npz"
    ranker = teach(new_ranker("cascade-lin-ts:sigma=0.5"), 10)
    ranker.recommend()
    ranker.save(path)
    return path


PAGE_KEYS = [
    "policy", "numbers", "k", "scale", "seed", "key", "origins", "records", "warm_starts",
    "max_pending", "requests", "items", "has_features", "groups", "cold", "pending",
    "unavailable", "encoder", "values", "explore", "chosen", "made", "expired", "baseline",
]  # fmt: skip
ARRAY_NAMES = [
    "features",
    "forgotten",
    "withdrawn",
    "pending.contexts",
    "pending.features",
    "state.precision",
    "state.moment",
    "state.factor",
    "state.observations",
    "state.time",
]


def test_these_are_all_the_parts_of_a_file(saved):
    parts = []
    rewrite(saved, lambda page, arrays: parts.extend([*page, *arrays]))
    assert sorted(parts) == sorted(["format", *PAGE_KEYS, *ARRAY_NAMES])
    assert len(Ranker.load(saved).pending) == 1


@pytest.mark.parametrize("part", [*PAGE_KEYS, *ARRAY_NAMES])
def test_a_file_with_a_part_missing_is_refused(saved, part):
    rewrite(saved, lambda page, arrays: (page if part in page else arrays).pop(part))
    assert refusal(Ranker.load, saved) == f"{saved}: damaged, or not written by this version of firstclick"


@pytest.mark.parametrize(
    "change",
    [
        lambda page, arrays: page.update(items=page["items"][1:]),
        lambda page, arrays: page.update(pending=[["x", [0, N_ITEMS], False]]),
        lambda page, arrays: page.update(pending=[["x", [-1], False]]),
        lambda page, arrays: page.update(pending=[["x", [0, 1, 2, 3], False]]),  # more than k
        lambda page, arrays: page.update(pending=[["x", [[0, 1]], False]]),
        lambda page, arrays: page.update(pending=[["x", [0], True]]),  # whose features are not there
        lambda page, arrays: page.update(pending=[]),
        lambda page, arrays: page.update(pending=7),
        lambda page, arrays: arrays.update({"pending.contexts": np.zeros((1, 1))}),
        lambda page, arrays: arrays.update({"pending.features": np.zeros((1, N_FEATURES))}),
        lambda page, arrays: arrays.update({"pending.features": np.zeros((0, N_FEATURES))}),
        lambda page, arrays: page.update(scale=None),
        lambda page, arrays: page["scale"].update(names=["one"]),
        lambda page, arrays: page["scale"].update(divisor=0.0),
        lambda page, arrays: page["scale"].update(intercept=float("nan")),
        lambda page, arrays: page.update(cold=7),
        lambda page, arrays: page.update(origins=[*page["origins"], 7]),  # without a record
        lambda page, arrays: page.update(made=[]),
        lambda page, arrays: page.update(made=[None]),
        lambda page, arrays: page.update(numbers=[1.0]),
        lambda page, arrays: page["policy"]["settings"].update(colour="red"),
        lambda page, arrays: page.update(policy="random"),
        lambda page, arrays: arrays.update(features=arrays["features"][:, 0]),
        lambda page, arrays: arrays.update(features=arrays["features"][:, 1:].copy()),
        lambda page, arrays: arrays.update(withdrawn=arrays["withdrawn"][2:]),
        lambda page, arrays: arrays.update({"state.moment": arrays["state.moment"].astype(np.float32)}),
        lambda page, arrays: arrays.update({"state.factor": arrays["state.factor"][1:]}),
    ],
)
def test_a_file_whose_parts_do_not_fit_together_is_refused(saved, change):
    rewrite(saved, change)
    assert refusal(Ranker.load, saved) == f"{saved}: damaged, or not written by this version of firstclick"


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (
            lambda page: page.update(format="firstclick ranker 2"),
            InvalidInput,
            "its format must be 'firstclick ranker 1', got 'firstclick ranker 2'; use the version of "
            "firstclick that wrote the file",
        ),
        (
            lambda page: page["policy"].update(name="cascade-lin-uct"),
            UnknownName,
            "policy 'cascade-lin-uct' is unknown; did you mean 'cascade-lin-ucb'?",
        ),
        (
            lambda page: page["policy"]["settings"].update(sigma=-1),
            InvalidInput,
            "cascade-lin-ts: sigma must be above 0, got -1",
        ),
        (lambda page: page.update(k=0), InvalidInput, "k must be at least 1, got 0"),
        (lambda page: page.update(cold=[N_ITEMS]), InvalidInput, "a row must be at most 10, got 11"),
        (
            lambda page: page.update(groups=["a"]),
            InvalidInput,
            "groups must have a name for each of the 11 items, or None, got 1",
        ),
    ],
)
def test_a_file_that_asks_for_what_cannot_be_is_refused_with_the_reason(saved, change, error, sentence):
    rewrite(saved, lambda page, arrays: change(page))
    assert refusal(Ranker.load, saved, error=error) == f"{saved}: {sentence}"


def test_a_save_that_fails_leaves_the_older_file_and_the_ranker_as_they_were(saved, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    older = Ranker.load(saved)
    newer = teach(Ranker.load(saved), 5)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WorkFailed, match="cannot be written: No space left on device"):
            newer.save(saved)
    assert same_state(Ranker.load(saved), older)
    assert not same_state(newer, older)
    missing = tmp_path / "no" / "r.npz"
    assert refusal(newer.save, missing) == f"{missing} cannot be written: No such file or directory"


# Merging


@every_policy
def test_merging_gives_what_one_ranker_would_know_from_both_logs(policy):
    one, two, both = new_ranker(policy, seed=1), new_ranker(policy, seed=2), new_ranker(policy, seed=3)
    for ranker, steps in ((one, 35), (two, 60)):
        draw = stream(ranker.seed, "clicks")
        for step in range(steps):
            slate = ranker.recommend()
            both.pending[slate.id] = ranker.pending[slate.id]
            if step % 7 == 3:
                continue  # This one waits until after the merger.
            click = int(draw.integers(K)) if draw.random() < 0.5 else None
            ranker.learn(slate, click=click)
            both.learn(slate, click=click)
    before = copy_of_state(one)
    merged = one.merge(two)
    assert merged.pending.keys() == one.pending.keys() | two.pending.keys() == both.pending.keys()
    for slate in list(merged.pending)[::2]:
        merged.learn(slate, click=1)
        both.learn(slate, click=1)
    for name, array in merged.state._asdict().items():
        expected = getattr(both.state, name)
        if array.dtype == np.int64:
            assert np.array_equal(array, expected), name
        else:
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-9, err_msg=name)
    assert all(np.array_equal(a, b) for a, b in zip(before, one.state, strict=True))
    assert len(merged.recommend()) == K


def test_a_merged_ranker_hides_what_either_withdrew_and_gives_ids_of_its_own():
    one, two = new_ranker(seed=1), new_ranker(seed=2)
    one.withdraw_items(["p3"])
    two.withdraw_items([9])
    waiting = [one.recommend(), two.recommend()]
    merged = one.merge(two)
    fresh = [merged.recommend() for _ in range(30)]
    assert not {"p3", 9} & {item for slate in fresh for item in slate.items}
    assert len({slate.id for slate in [*waiting, *fresh]}) == 32
    merged.withdraw_items([30])
    assert len(one.catalog) == 10
    assert one.merge(two, seed=12).seed == 12
    for seed in (1, 2):
        assert refusal(one.merge, two, seed=seed).startswith("seed must be a new one")
        assert refusal(merged.merge, new_ranker(seed=7), seed=seed).startswith("seed must be a new one")


def test_more_slates_than_either_keeps_may_wait_after_merging():
    one, two = (new_ranker("random", seed=seed, max_pending=3) for seed in (1, 2))
    waiting = [ranker.recommend() for ranker in (one, two) for _ in range(3)]
    merged = one.merge(two)
    for slate in waiting:
        merged.learn(slate, click=0)
    assert merged.state.time[0] == 6
    assert merged.max_pending == 6


def ranker_of(policy="cascade-lin-ts", items=ITEMS, features=FEATURES, k=K, seed=2):
    return Ranker(Catalog(items, features), k=k, policy=policy, seed=seed)


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (ranker_of("cascade-lin-ucb"), "cascade-lin-ts with k=3 and cascade-lin-ucb with k=3"),
        (
            ranker_of("cascade-lin-ts:sigma=0.5"),
            "cascade-lin-ts with k=3 and cascade-lin-ts:sigma=0.5 with k=3",
        ),
        (ranker_of(k=2), "cascade-lin-ts with k=3 and cascade-lin-ts with k=2"),
        (ranker_of(items=ITEMS[::-1]), "only rankers of one catalog can be merged"),
        (ranker_of(items=ITEMS[1:], features=FEATURES[1:]), "only rankers of one catalog can be merged"),
        (ranker_of(features=FEATURES + 1e-12), "only rankers of one catalog can be merged"),
        (ranker_of(features=FEATURES[:, 1:]), "only rankers of one catalog can be merged"),
    ],
)
def test_rankers_that_differ_are_not_merged(other, part):
    assert part in refusal(new_ranker().merge, other)


@OTHERS
def test_rankers_that_scale_features_differently_are_not_merged():
    policy, rows = "cascade-lin-ucb:c=theory,horizon=9", np.array([[3.0, 4.0], [3.0, 4.0 + 5e-12]])
    at_once = Ranker(Catalog(["a", "b"], rows), k=1, policy=policy, seed=1)
    later = Ranker(Catalog(["a"], rows[:1]), k=1, policy=policy, seed=2)
    later.add_items(["b"], rows[1:])  # Longer only by rounding, and so admitted.
    assert "started with different features" in refusal(at_once.merge, later)


def test_rankers_of_one_seed_are_not_merged(tmp_path):
    """They are copies, whose common past would count twice, or explore the same."""
    one = new_ranker(seed=4)
    one.learn(one.recommend(), click=0)
    one.save(tmp_path / "one.npz")
    for other in (one, new_ranker(seed=4), Ranker.load(tmp_path / "one.npz")):
        assert refusal(one.merge, other).startswith("both rankers have seed 4: copies of one ranker")
    assert refusal(one.merge, None) == "a ranker can be merged with a ranker, got None"


def test_what_one_ranker_learned_is_merged_once(tmp_path):
    a, b, c = (teach(new_ranker(seed=seed), 5) for seed in (1, 2, 3))
    both = a.merge(b)
    both.save(tmp_path / "both.npz")
    for merged in (both, Ranker.load(tmp_path / "both.npz")):
        for again in (a, b, a.merge(c)):
            for one, other in ((merged, again), (again, merged)):
                assert refusal(one.merge, other).startswith("both rankers know what one ranker has learned")
        assert merged.merge(c).state.time[0] == 15


@pytest.mark.parametrize("policy", sorted(policy_classes()))
def test_the_way_out_of_a_refused_merge_is_one_that_the_policy_takes(policy):
    one, two = (Ranker(Catalog(ITEMS, abs(FEATURES) / 9), k=K, policy=policy, seed=seed) for seed in (1, 2))
    if one.policy.mergeable:
        return
    sentence = refusal(one.merge, two)
    log = [{"items": ITEMS[:K], "click": 0}]
    if "give one ranker both logs in turn, by warm_start" in sentence:
        assert one.warm_start(log) == 1
    else:
        assert "let one ranker show all slates" in sentence
        assert "takes no log" in refusal(one.warm_start, log)


@OTHERS
def test_a_state_that_does_not_grow_with_the_catalog_is_caught_before_a_kernel_overruns_it():
    class NeverGrows(CascadeUCB1):
        def grow(self, state, n_items):
            return state

    ranker = Ranker(Catalog([1, 5, 9]), k=2, policy=NeverGrows())
    for _ in range(2):
        assert refusal(ranker.add_items, [12]) == (
            "cascade-ucb1: its state has no room for 4 items; write grow() for it"
        )
    # The item was not added: the ranker is as good as before.
    assert len(ranker.recommend().items) == 2


def test_a_slate_is_only_a_handle_and_a_list():
    slate = new_ranker().recommend()
    assert slate == Slate(id=slate.id, items=slate.items, reasons=("policy",) * len(slate))
    assert isinstance(slate.items, tuple)


# What is public


def test_a_ranker_shows_these_names_and_nothing_of_its_engine():
    assert {name for name in dir(new_ranker()) if not name.startswith("_")} == {
        "add_items", "baseline", "catalog", "change_items", "estimates", "expire", "explore", "floor", "k",
        "learn", "load", "max_pending", "merge", "pending", "policy", "recommend", "requests", "save", "seed",
        "set_available", "set_baseline", "state", "warm_start", "withdraw_items",
    }  # fmt: skip


def test_a_policy_and_a_seed_are_chosen_for_who_names_none(tmp_path):
    assert Ranker(Catalog(ITEMS), k=K).policy == make_policy("cascade-mixed")
    ranker = Ranker(Catalog(ITEMS, FEATURES), k=K)
    assert ranker.policy == make_policy("cascade-mixed")
    assert ranker.seed != Ranker(Catalog(ITEMS, FEATURES), k=K).seed
    ranker.save(tmp_path / "r.npz")
    again, same = Ranker.load(tmp_path / "r.npz"), Ranker(Catalog(ITEMS, FEATURES), k=K, seed=ranker.seed)
    assert again.seed == ranker.seed
    assert ranker.recommend().items == again.recommend().items == same.recommend().items


def test_estimates_are_those_of_the_items_in_their_order_withdrawn_ones_too():
    ranker = teach(new_ranker("cascade-ts"), 30)
    ranker.withdraw_items([9])
    means, deviations = ranker.estimates([9, "p3", 9])
    rows = [4, 0, 4]
    expected = (ranker.state.hits[rows] + 1) / (ranker.state.examined[rows] + 2)
    np.testing.assert_allclose(means, expected)
    assert deviations[0] == deviations[2] > 0
    assert "got 'p4'" in refusal(ranker.estimates, ["p4"], error=UnknownName)
    users = new_ranker("context-lin-ts:context=2")
    assert "context must be 2 numbers for" in refusal(users.estimates, ITEMS, context=[1])
    assert not users.estimates(ITEMS, context=[1, 2])[0].any()


# Features


def test_features_are_scaled_once_at_the_start_and_stay_as_given_in_the_catalog(tmp_path):
    table = FEATURES * 1000
    ranker = Ranker(Catalog(ITEMS, table), k=K, policy="cascade-lin-ts", seed=1)
    norms = np.linalg.norm(ranker._engine.features, axis=1)
    assert norms.max() == pytest.approx(1.0)
    assert ranker._engine.features.shape == (N_ITEMS, N_FEATURES + 1)
    ranker.add_items(["longer"], [table[0] * 100])
    np.testing.assert_array_equal(ranker.catalog.features[:N_ITEMS], table)
    ranker.save(tmp_path / "r.npz")
    again = Ranker.load(tmp_path / "r.npz")
    for one in (ranker, again):
        np.testing.assert_array_equal(one.catalog.features[-1], table[0] * 100)
        assert np.linalg.norm(one._engine.features[-1]) > 10, "by the scale of the start"
    assert same_state(teach(ranker, 20), teach(again, 20))
