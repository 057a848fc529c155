"""A ranker in a program: ids of slates, growing catalogs, files and merging."""

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
from tests.online.rankers import (
    FEATURES,
    ITEMS,
    N_FEATURES,
    N_ITEMS,
    K,
    new_ranker,
    refusal,
    rewritten,
    state_of,
    teach,
)
from tests.support.policies import OTHERS, policies

# One of each kind of state and of shortcut; the conformance checks try all policies.
OURS = [
    "cascade-kl-ucb", "cascade-lin-ts", "cascade-lin-ucb", "cascade-ts", "cascade-ucb1", "random",
    "ranked-lin-ts",
]  # fmt: skip
every_policy = pytest.mark.parametrize(
    "policy", policies([*OURS, "cascade-lin-ucb:c=theory,horizon=900", "cascade-lin-ts:sigma=0.3"])
)


def test_a_policy_and_a_seed_are_chosen_where_none_is_given(tmp_path):
    for features in (None, FEATURES):
        ranker = Ranker(Catalog(ITEMS, features), k=K)
        assert ranker.policy == make_policy("cascade-mixed")
    assert ranker.seed != Ranker(Catalog(ITEMS, FEATURES), k=K).seed
    ranker.save(tmp_path / "r.npz")
    again, same = Ranker.load(tmp_path / "r.npz"), Ranker(Catalog(ITEMS, FEATURES), k=K, seed=ranker.seed)
    assert again.seed == ranker.seed
    assert ranker.recommend().items == again.recommend().items == same.recommend().items


@every_policy
def test_slates_follow_from_the_seed_and_the_feedback(policy):
    first, same, other = (teach(new_ranker(policy, seed=seed), 40) for seed in (5, 5, 6))
    before = state_of(first)
    assert before == state_of(same)
    slates = [[ranker.recommend().items for _ in range(10)] for ranker in (first, same, other)]
    assert state_of(first) == before, "recommending only reads the state"
    assert slates[0] == slates[1]
    # Without noise and without ties the seed has nothing to decide.
    assert (slates[0] == slates[2]) == policy.startswith("cascade-lin-ucb")


def test_a_ranker_describes_itself_and_shows_nothing_of_its_engine():
    ranker = new_ranker("cascade-ts:a=0.5")
    ranker.withdraw_items([9])
    assert repr(ranker) == "Ranker('cascade-ts:a=0.5', 10 items, k=3)"
    slate = ranker.recommend()
    assert slate == Slate(id=slate.id, items=slate.items, reasons=("policy",) * len(slate))
    assert slate != ranker.recommend()
    assert {name for name in dir(ranker) if not name.startswith("_")} == {
        "add_items", "baseline", "catalog", "change_items", "estimates", "expire", "explore", "floor", "k",
        "learn", "load", "max_pending", "merge", "pending", "policy", "recommend", "requests", "save", "seed",
        "set_available", "set_baseline", "state", "warm_start", "withdraw_items",
    }  # fmt: skip


def test_k_may_be_all_items_that_can_be_shown():
    assert len(new_ranker("random", k=np.int64(N_ITEMS)).recommend()) == N_ITEMS
    catalog = Catalog(ITEMS)
    catalog.withdraw([9, 30])
    assert refusal(Ranker, catalog, k=10, policy="random").argument == "k"


# What became of a slate


def fates(ranker, slates):
    """The class of the error for each slate; None where it is learned."""
    kinds = []
    for slate in slates:
        try:
            ranker.learn(slate.id, click=None)
            kinds.append(None)
        except InvalidInput as error:
            kinds.append(type(error))
    return kinds


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
    assert "max_pending" in str(refusal(ranker.learn, forgotten, click=0))


@pytest.mark.parametrize("way", ["save", "copy", "deepcopy", "pickle", "merge", "merge and save", "twice"])
def test_the_fate_of_a_slate_is_known_after(way, tmp_path):
    draw = np.random.default_rng(4)
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
    kinds = dict(zip([slate.id for slate in shown], fates(ranker, shown), strict=True))
    for slate in shown:
        wanted = None if slate.id in waiting else expected.get(slate.id, ForgottenSlate)
        assert kinds[slate.id] == wanted
    assert {None, DuplicateFeedback, ForgottenSlate} == set(kinds.values())


def test_the_record_of_slates_takes_little_room(monkeypatch):
    monkeypatch.setattr("firstclick.online.slate_record.MOST_RECORDED", 800)
    ranker = new_ranker("random", max_pending=1)
    slates = [ranker.recommend() for _ in range(3000)]
    (record,) = ranker._records.values()
    assert len(record.forgotten) <= 100
    assert fates(ranker, slates[-390:]) == [*[ForgottenSlate] * 389, None]
    assert "too old" in str(refusal(ranker.learn, slates[0], click=0, error=ForgottenSlate))
    # A number far away, as of a ranker that has counted to it, takes no room either.
    record.forget(2**61)
    assert len(record.forgotten) <= 100


@OTHERS
def test_slates_of_other_rankers_are_refused():
    catalog = Catalog(ITEMS, FEATURES)
    ours, twin = (Ranker(catalog, k=K, policy="cascade-ucb1", seed=0) for _ in range(2))
    theirs = Ranker(catalog, k=K, policy="cascade-ts", seed=0)
    wider = Ranker(catalog, k=K + 1, policy="cascade-ucb1", seed=0)
    waiting = ours.recommend()
    for other in (theirs, wider):
        assert "this ranker did not recommend it" in str(refusal(ours.learn, other.recommend(), click=0))
    assert "by a copy of this ranker" in str(refusal(ours.learn, twin.recommend(), click=0))
    forged = Slate(id=waiting.id, items=twin.recommend(exclude=waiting.items).items)
    assert "has other items than this ranker recommended" in str(refusal(ours.learn, forged, click=0))
    ours.learn(waiting, click=0)


def test_no_id_is_given_twice_and_a_stale_one_has_its_own_error(tmp_path):
    """After a crash the file is older than some slates that are out: their clicks are for no other slate."""
    ranker, path = new_ranker(), tmp_path / "r.npz"
    kept, learned = ranker.recommend(), ranker.recommend()
    ranker.learn(learned, click=0)
    ranker.save(path)
    lost = [ranker.recommend() for _ in range(3)]
    loaded, twice = Ranker.load(path), Ranker.load(path)
    fresh = [loaded.recommend() for _ in range(3)]
    assert [slate.items for slate in fresh] == [slate.items for slate in lost], "the same numbers as before"
    assert not {slate.id for slate in fresh} & {slate.id for slate in lost}
    before = state_of(loaded)

    def check_stale(ranker, slates):
        for stale in slates:
            assert "after the file of this ranker was saved" in str(refusal(ranker.learn, stale.id, click=1))
        refusal(ranker.learn, learned.id, click=1, error=DuplicateFeedback)

    check_stale(loaded, [*lost, twice.recommend()])
    assert "this ranker did not recommend it" in str(refusal(loaded.learn, "0123456789abcdef-1-1", click=1))
    assert state_of(loaded) == before
    loaded.learn(kept.id, click=1)
    loaded.learn(fresh[1].id, click=1)
    assert loaded.state.time[0] == 3
    for _ in range(3):
        loaded.save(path)
        loaded = Ranker.load(path)
        for _ in range(5):
            loaded.recommend()
    check_stale(loaded, lost)


def test_copies_and_twins_give_other_ids():
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


# Estimates


def test_estimates_are_those_of_the_items_in_their_order():
    ranker = teach(new_ranker("cascade-ts"), 30)
    ranker.withdraw_items([9])
    rows = [4, 0, 4]
    expected = (ranker.state.hits[rows] + 1) / (ranker.state.examined[rows] + 2)
    ids = [9, "p3", 9]
    for same in (ids, tuple(ids), iter(ids), np.array([9, "p3", 9], object)):
        means, deviations = ranker.estimates(same)
        np.testing.assert_allclose(means, expected)
        assert deviations[0] == deviations[2] > 0
    assert ranker.estimates(ranker.catalog.subset(["p3", 9]))[0].tolist() == means[1:].tolist()
    assert [len(part) for part in ranker.estimates([])] == [0, 0]
    for wrong in (40, "30", "p4"):
        assert refusal(ranker.estimates, [wrong], error=UnknownName).argument == "items"


# Catalogs that change


def test_a_slate_is_learned_with_the_features_it_was_shown_with():
    ranker, still = new_ranker(), new_ranker()
    slate = ranker.recommend()
    same = still.recommend()
    assert slate.items == same.items
    ranker.withdraw_items(slate.items)
    ranker.add_items(slate.items, np.full((K, N_FEATURES), 0.9))
    ranker.learn(slate, click=2)
    still.learn(same, click=2)
    assert state_of(ranker) == state_of(still)
    assert ranker.catalog.rows(slate.items).tolist() == [N_ITEMS, N_ITEMS + 1, N_ITEMS + 2]
    assert len(ranker.catalog) == N_ITEMS


@OTHERS
def test_c_of_the_theorem_refuses_longer_features_later():
    policy = "cascade-lin-ucb:c=theory,horizon=100"
    ranker = Ranker(Catalog(["a", "b"], [[3.0, 4.0], [0.5, 0.5]]), k=1, policy=policy)
    ranker.add_items(["as long"], [[0.0, 5.0]])
    assert "norm of at most 1" in str(refusal(ranker.add_items, ["longer"], [[0.0, 6.0]]))
    assert len(ranker.catalog) == 3
    Ranker(ranker.catalog, k=1, policy="cascade-lin-ucb").add_items(["longer"], [[0.0, 6.0]])
    assert "norm of at most 1" in str(refusal(ranker.recommend))


@every_policy
def test_rankers_that_share_a_catalog_all_see_its_changes(policy, tmp_path):
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


def test_features_are_scaled_once_and_stay_as_given_in_the_catalog(tmp_path):
    table = FEATURES * 1000
    ranker = new_ranker(features=table)
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
    assert state_of(teach(ranker, 20)) == state_of(teach(again, 20))


@OTHERS
def test_a_state_that_does_not_grow_is_caught_before_a_kernel_overruns_it():
    kind = type(make_policy("cascade-ucb1"))
    never_grows = type("NeverGrows", (kind,), {"grow": lambda self, state, n_items: state})
    ranker = Ranker(Catalog([1, 5, 9]), k=2, policy=never_grows())
    for _ in range(2):
        assert "no room for 4 items" in str(refusal(ranker.add_items, [12]))
    # The item was not added: the ranker is as good as before.
    assert len(ranker.recommend().items) == 2


# Files


@every_policy
def test_a_loaded_ranker_goes_on_bit_for_bit_with_waiting_slates(policy, tmp_path):
    whole, saved = (teach(new_ranker(policy), 40) for _ in range(2))
    for ranker in (whole, saved):
        for step in range(4):
            ranker.recommend(exclude=ITEMS[step : step + 3])
    saved.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert len(loaded.pending) == 4
    assert loaded.catalog.items == whole.catalog.items
    assert [type(item) for item in loaded.catalog.items] == [type(item) for item in whole.catalog.items]
    assert (loaded.policy, loaded.k, loaded.seed) == (whole.policy, K, 5)
    for ranker in (whole, loaded):
        for slate in list(ranker.pending)[2:0:-1]:
            ranker.learn(slate, click=1)
        ranker.withdraw_items(ITEMS[:2])
        ranker.add_items(["new"], [[0.3] * N_FEATURES])
        teach(ranker, 60)
    slates = [[ranker.recommend(candidates=ITEMS[::2]).items for _ in range(9)] for ranker in (loaded, whole)]
    assert slates[0] == slates[1]
    assert state_of(loaded) == state_of(whole)
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


def test_the_largest_seed_and_no_features_are_kept(tmp_path):
    ranker = new_ranker("cascade-ts:a=0.3", features=None, seed=2**256 - 1)
    ranker.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert loaded.recommend().items == ranker.recommend().items
    assert loaded.catalog.features is None
    assert loaded.policy == make_policy("cascade-ts:a=0.3")
    loaded.add_items(["new"])
    assert len(loaded.recommend()) == K


def test_a_ranker_that_cannot_be_saved_stays_as_it_was(saved, tmp_path):
    newer = teach(Ranker.load(saved), 5)
    before = state_of(newer)
    assert "cannot be written" in str(refusal(newer.save, tmp_path / "no" / "r.npz"))
    assert state_of(newer) == before != state_of(Ranker.load(saved))


@pytest.fixture
def saved(tmp_path):
    """The file of a ranker that has forgotten a slate and waits for another one."""
    ranker = teach(new_ranker("cascade-lin-ts:sigma=0.5", max_pending=1), 10)
    ranker.recommend()
    ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    return tmp_path / "r.npz"


DAMAGED = "damaged, or not written by this version of firstclick"


def test_a_file_with_a_part_missing_is_refused(saved):
    content, parts = saved.read_bytes(), []
    rewritten(saved, lambda page, arrays: parts.extend({*page, *arrays} - {"format"}))
    assert {"policy", "pending", "records", "features", "state.factor"} < {*parts}
    for part in parts:
        saved.write_bytes(content)
        rewritten(saved, lambda page, arrays, part=part: (page if part in page else arrays).pop(part))
        assert str(refusal(Ranker.load, saved)) == f"{saved}: {DAMAGED}", part


def put(**values):
    return lambda page, arrays: page.update(values)


def put_arrays(change):
    return lambda page, arrays: arrays.update(change(arrays))


@pytest.mark.parametrize(
    "change",
    [
        lambda page, arrays: page.update(items=page["items"][1:]),
        *(
            put(pending=pending)
            for pending in (
                [["x", [0, N_ITEMS], False]],
                [["x", [-1], False]],
                [["x", [10**30], False]],
                [["x", [0, 1, 2, 3], False]],  # more than k
                [["x", [[0, 1]], False]],
                [["x", [0], True]],  # whose features are not there
                [],
                7,
            )
        ),
        put_arrays(lambda _: {"pending.contexts": np.zeros((1, 1))}),
        put_arrays(lambda _: {"pending.features": np.zeros((1, N_FEATURES))}),
        put_arrays(lambda _: {"pending.features": np.zeros((0, N_FEATURES))}),
        put(scale=None),
        lambda page, arrays: page["scale"].update(names=["one"]),
        lambda page, arrays: page["scale"].update(divisor=0.0),
        lambda page, arrays: page["scale"].update(intercept=float("nan")),
        put(cold=7),
        lambda page, arrays: page.update(origins=[*page["origins"], 7]),  # without a record
        put_arrays(lambda _: {"forgotten": np.zeros(1)}),
        put(made=[]),
        put(made=[None]),
        put(numbers=[1.0]),
        lambda page, arrays: page["policy"]["settings"].update(colour="red"),
        put(policy="random"),
        put_arrays(lambda old: {"features": old["features"][:, 0]}),
        put_arrays(lambda old: {"features": old["features"][:, 1:].copy()}),
        put_arrays(lambda old: {"withdrawn": old["withdrawn"][2:]}),
        put_arrays(lambda old: {"state.moment": old["state.moment"].astype(np.float32)}),
        put_arrays(lambda old: {"state.factor": old["state.factor"][1:]}),
    ],
)
def test_a_file_whose_parts_do_not_fit_together_is_refused(saved, change):
    rewritten(saved, change)
    assert str(refusal(Ranker.load, saved)) == f"{saved}: {DAMAGED}"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put(format="firstclick ranker 2"), "use the version of firstclick that wrote the file"),
        (lambda page, _: page["policy"].update(name="cascade-lin-uct"), "did you mean 'cascade-lin-ucb'"),
        (lambda page, _: page["policy"]["settings"].update(sigma=-1), "sigma must be above 0, got -1"),
        (put(k=0), "k must be at least 1, got 0"),
        (put(cold=[N_ITEMS]), "a row must be at most 10, got 11"),
        (put(groups=["a"]), "groups must have a name for each of the 11 items"),
        (lambda page, _: page["records"][0].__setitem__(2, -1), "a number must be at least 0"),
        (lambda page, _: page["records"][0].__setitem__(3, 1000), "a size must be at most"),
        (lambda page, _: page["records"][0].__setitem__(3, 0), "damaged"),
        (lambda page, _: page["records"].append(page["records"][0]), "a size must be at most"),
        (lambda page, _: page["records"].append([9, {"a": -1}, 0, 0]), "a request must be at least 0"),
    ],
)
def test_a_file_that_no_ranker_can_follow_is_refused_with_the_reason(saved, change, reason):
    rewritten(saved, change)
    sentence = str(refusal(Ranker.load, saved, error=(InvalidInput, UnknownName)))
    assert sentence.startswith(f"{saved}: ")
    assert reason in sentence


def test_a_ranker_of_another_version_of_its_policy_is_refused(saved):
    rewritten(saved, lambda page, _: page["policy"].update(version=2))
    sentence = str(refusal(Ranker.load, saved, error=WorkFailed))
    assert "saved by version 2 of cascade-lin-ts, and this firstclick has version 1" in sentence


# Merging


@every_policy
def test_a_merged_ranker_knows_what_both_logs_teach(policy):
    one, two, both = new_ranker(policy, seed=1), new_ranker(policy, seed=2), new_ranker(policy, seed=3)
    for ranker, steps in ((one, 35), (two, 60)):
        draw = np.random.default_rng(ranker.seed)
        for step in range(steps):
            slate = ranker.recommend()
            both.pending[slate.id] = ranker.pending[slate.id]
            if step % 7 == 3:
                continue  # This one waits until after the merger.
            click = int(draw.integers(K)) if draw.random() < 0.5 else None
            ranker.learn(slate, click=click)
            both.learn(slate, click=click)
    before = state_of(one)
    merged = one.merge(two)
    assert merged.pending.keys() == one.pending.keys() | two.pending.keys() == both.pending.keys()
    for slate in list(merged.pending)[::2]:
        merged.learn(slate, click=1)
        both.learn(slate, click=1)
    refusal(merged.learn, slate, click=1, error=DuplicateFeedback)
    for name, array in merged.state._asdict().items():
        expected = getattr(both.state, name)
        if array.dtype == np.int64:
            assert np.array_equal(array, expected), name
        else:
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-9, err_msg=name)
    assert state_of(one) == before
    assert len(merged.recommend()) == K


def test_a_merged_ranker_hides_what_either_withdrew_and_gives_its_own_ids():
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


def test_more_slates_than_either_keeps_may_wait_after_merging():
    one, two = (new_ranker("random", seed=seed, max_pending=3) for seed in (1, 2))
    waiting = [ranker.recommend() for ranker in (one, two) for _ in range(3)]
    merged = one.merge(two)
    for slate in waiting:
        merged.learn(slate, click=0)
    assert merged.state.time[0] == 6
    assert merged.max_pending == 6


def ranker_of(policy="cascade-lin-ts", items=ITEMS, features=FEATURES, k=K):
    return Ranker(Catalog(items, features), k=k, policy=policy, seed=2)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (ranker_of("cascade-lin-ucb"), "cascade-lin-ts with k=3 and cascade-lin-ucb with k=3"),
        (ranker_of("cascade-lin-ts:sigma=0.5"), "and cascade-lin-ts:sigma=0.5 with k=3"),
        (ranker_of(k=2), "cascade-lin-ts with k=3 and cascade-lin-ts with k=2"),
        (ranker_of(items=ITEMS[::-1]), "of one catalog"),
        (ranker_of(items=ITEMS[1:], features=FEATURES[1:]), "of one catalog"),
        (ranker_of(features=FEATURES + 1e-12), "of one catalog"),
        (ranker_of(features=FEATURES[:, 1:]), "of one catalog"),
        (new_ranker(groups=["tea"] * N_ITEMS, seed=2), "the same items, features and groups"),
        (None, "other must be a ranker"),
    ],
)
def test_rankers_that_differ_are_not_merged(other, reason):
    assert reason in str(refusal(new_ranker().merge, other))


@OTHERS
def test_rankers_that_scale_features_differently_are_not_merged():
    policy, rows = "cascade-lin-ucb:c=theory,horizon=9", np.array([[3.0, 4.0], [3.0, 4.0 + 5e-12]])
    at_once = Ranker(Catalog(["a", "b"], rows), k=1, policy=policy, seed=1)
    later = Ranker(Catalog(["a"], rows[:1]), k=1, policy=policy, seed=2)
    later.add_items(["b"], rows[1:])  # Longer only by rounding, and so admitted.
    assert "started with different features" in str(refusal(at_once.merge, later))


def test_what_one_ranker_learned_is_merged_once(tmp_path):
    """Rankers of one seed are copies, whose common past would count twice, or explore the same."""
    a, b, c = (teach(new_ranker(seed=seed), 5) for seed in (1, 2, 3))
    a.save(tmp_path / "a.npz")
    for other in (a, new_ranker(seed=1), Ranker.load(tmp_path / "a.npz")):
        assert "copies of one ranker" in str(refusal(a.merge, other))
    both = a.merge(b)
    both.save(tmp_path / "both.npz")
    for merged in (both, Ranker.load(tmp_path / "both.npz")):
        for again in (a, b, a.merge(c)):
            for one, other in ((merged, again), (again, merged)):
                assert "other must not share slates with this ranker" in str(refusal(one.merge, other))
        assert merged.merge(c).state.time[0] == 15
        for seed in (1, 2):
            assert refusal(merged.merge, c, seed=seed).argument == "seed"
            assert refusal(a.merge, b, seed=seed).argument == "seed"


@pytest.mark.parametrize("policy", policies(sorted(policy_classes())))
def test_the_way_out_of_a_refused_merge_is_one_that_the_policy_takes(policy):
    one, two = (new_ranker(policy, features=FEATURES / 9, seed=seed) for seed in (1, 2))
    if one.policy.mergeable:
        return
    sentence = str(refusal(one.merge, two))
    log = [{"items": ITEMS[:K], "click": 0}]
    if "give one ranker both logs in turn, by warm_start" in sentence:
        assert one.warm_start(log) == 1
    else:
        assert "let one ranker show all slates" in sentence
        assert refusal(one.warm_start, log).argument == "log"
