"""A fork is what a new model of its policy would be after the same calls; copied slates keep their origin."""

import numpy as np
import pytest

from firstclick import policy_classes
from firstclick.registry import is_research
from firstclick.serve import Item
from firstclick.serve.log.events import Kind
from firstclick.serve.model.fork import COPIES, fork
from firstclick.serve.model.sources import ARCHIVED, NOT_HERE
from tests.support.clock import Clock
from tests.support.logs import (
    QUIET,
    check_has_logs_of,
    entry_of,
    feedback_of,
    fork_of,
    move_to_archive,
    raw_events,
    replay,
    reproduce,
)
from tests.support.policies import COMPILED, OTHERS
from tests.support.refusals import check_refused
from tests.support.seam import BY_HAND
from tests.support.shop import FEATURES, IDS, K

OURS = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
ABLE = [name for name, cls in OURS.items() if cls.learns_from_others and not cls.unit_features]
# Prices, shares and counts: of different units, far from norm 1, and written with few digits.
UNROUNDED = np.abs(FEATURES) * [90.0, 1.0, 7.0, 0.1]
PRICES = UNROUNDED.round(3)
NEW = "cascade-ts"


@pytest.fixture
def open_shop(open_shop):
    """Shops whose log has no events but those of the test."""
    return lambda *store, **more: open_shop(*store, **{"tuning": QUIET, "clock": Clock()} | more)


@pytest.fixture
def shop(open_shop):
    return open_shop(policy="cascade-lin-ts", features=PRICES)


def policy_of(shop):
    return shop.internals.engine.policy


def call(method, *arguments, **named):
    return lambda shop: getattr(shop, method)(*arguments, **named)


def show(request, report):
    """Show and report a slate; a policy that takes no context or features is given none."""

    def call(shop):
        policy = policy_of(shop)
        takes = {"context": policy.n_context > 0, "features": policy.takes_features}
        given = {name: value for name, value in request.items() if takes.get(name, True)}
        shop.feedback(shop.recommend(**given), **report)

    return call


def play(shop, steps, *, seed=1, features=True):
    """Requests and clicks of all sorts; returns the calls that show and report the same slates elsewhere."""
    rng, policy, calls = np.random.default_rng(seed), policy_of(shop), []
    for step in range(steps):
        request, own = {}, {}
        if policy.n_context:
            request["context"] = rng.normal(size=policy.n_context).round(2).tolist()
        if step % 5 == 1:
            request |= {"candidates": IDS[:8], "exclude": ["i1"]}
            if features and policy.takes_features:
                own = dict(zip(IDS, (rng.random((8, 4)) * [45.0, 0.5, 3.5, 0.1]).round(2), strict=False))
                request["features"] = [own[id] for id in IDS[:8]]
        if step % 5 == 2:
            request |= {"pinned": {1: "i6"}, "k": 2}
        if step % 5 == 3:
            request |= {"at_most": {"odd": 1}}
        slate = shop.recommend(**request)
        n = len(slate.items)
        report = {"click": (None, 0, n - 1)[step % 3]}
        if step % 4 == 3:
            report = {"clicks": [0, n - 1], "examined": n}
        if step % 11 == 10:
            report = {"click": 0, "examined": 2}
        shop.feedback(slate, **report)
        same = {"pinned": dict(enumerate(slate.items)), "k": n, "context": request.get("context")}
        if own:
            same |= {"candidates": slate.items, "features": [own[id] for id in slate.items]}
        calls.append(show(same, report))
    return calls


def run_eventful(shop, *, features=True):
    """All that may happen to a model, as a list of calls."""
    new, other, changed = (
        {"features": row} if features else {}
        for row in ([9.5, 0.25, 3.0, 0.0], [12.0, 0.5, 1.0, 0.05], [33.3, 0.125, 6.0, 0.1])
    )
    parts = [
        [
            call("put_items", [Item("n0", "new", "odd", **new)]),
            call("put_items", [Item("n1", group="even", available=False, **other)]),
            call("put_list", "half", IDS[:6]),
            call("set_available", off=["i5"]),
        ],
        [
            call("put_items", [Item("i6", **changed), Item("i7", "renamed")]),
            call("withdraw_items", ["i2"]),
            call("set_explore", 0.2),
        ],
        [call("roll_back", 20), call("set_available", on=["n1"], off=["i4"])],
        [],
    ]
    calls = []
    for seed, changes in enumerate(parts):
        calls += play(shop, 12, seed=seed, features=features)
        for change in changes:
            change(shop)
        calls += changes
    return calls


def check_same(mine, other):
    """Both have learned the same, bit for bit, and have the same items and settings."""
    for (name, array), its in zip(mine.state().items(), other.state().values(), strict=True):
        assert (array.dtype, array.tobytes()) == (its.dtype, its.tobytes()), name
    models = [shop.internals for shop in (mine, other)]
    np.testing.assert_array_equal(*(model.engine.features for model in models))
    assert models[0].engine.numbers == models[1].engine.numbers
    assert models[0].click_stats.skipped == 0
    facts = ("policy", "explore", "withdrawn", "unavailable", "slates", "clicks", "seq", "no_click_after")
    described, items, lists = (
        [[shop.describe()[fact] for fact in facts] for shop in (mine, other)],
        [[(item[:3], item.available) for item in shop.items().values()] for shop in (mine, other)],
        [{name: [*rows] for name, rows in model.items.lists.items()} for model in models],
    )
    for one, another in (described, items, lists):
        assert one == another


def pairs():
    """Origins and policies of forks: some for each thing that one of them may have and the other not."""
    chosen = [
        *(("cascade-lin-ts", policy) for policy in ABLE if not is_research(OURS[policy])),
        ("cascade-mixed", "cascade-lin-ts"), ("cascade-ts", "cascade-mixed"), ("cascade-lin-ts", "pbm-ucb"),
        ("cascade-mixed", "cascade-lin-ucb"), ("context-lin-ts:context=2", "c3-ucb:context=2"),
        ("context-lin-ts:context=2", "cascade-ts"), ("dcm-lin-ts", "cascade-lin-ts"),
    ]  # fmt: skip
    return [
        *(pytest.param(*pair, PRICES, marks=[] if {*pair} <= {*COMPILED} else [OTHERS]) for pair in chosen),
        pytest.param("cascade-ts", "cascade-mixed", False, id="without features"),
    ]


@pytest.mark.parametrize(("origin", "policy", "features"), pairs())
def test_a_fork_is_what_a_new_model_of_its_policy_would_be(open_shop, tmp_path, origin, policy, features):
    shop = open_shop(policy=origin, features=features)
    calls = run_eventful(shop, features=features is not False)
    digest = shop.digest()
    forked = shop.fork(policy, "forked")
    new = open_shop(tmp_path / "new.db", policy=policy, features=features)
    for each in calls:
        each(new)
    check_same(forked, new)
    assert shop.digest() == digest
    assert forked.audit().equal
    # Its slates and those of its origin are reproduced, each by the model that drew it.
    n = len(feedback_of(shop))
    context = {"context": [0.5, 0.5]} if policy_of(forked).n_context else {}
    for click in (0, None, 1):
        forked.feedback(forked.recommend(**context), click)
    audit = reproduce(forked)
    assert (audit.equal, audit.differing, audit.other_build, audit.not_evaluable) == (n + 3, 0, 0, {})
    assert audit.by_origin == {f"shop ({origin.partition(':')[0]})": n}


def test_policies_that_cannot_learn_from_a_log_are_rejected(open_shop):
    shop = open_shop(policy="cascade-ts", features=False)
    play(shop, 3)
    for policy, word in (
        ("cascade-lin-ts", "features"), ("c3-ucb:context=2", "context"), ("bubble-rank", "shuffled")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=word) as caught:
            shop.fork(policy, "forked")
        able = str(caught.value).partition("these can: ")[2]
        assert {"cascade-mixed", "cascade-ucb1"} <= {*able.split(", ")} or not able
        assert not {"cascade-lin-ucb", "bubble-rank", "batch-rank"} & {*able.split(", ")}
    assert shop.service.names() == ["shop"]
    rows = shop.service.store._database.rows
    counts = [rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("event", "unfinished")]
    assert counts == [4, 0], "nothing is left of a fork that was rejected"


def test_a_catalog_of_columns_is_encoded_again(open_shop):
    """From what people gave, so that no digit is lost in a scale that is undone."""
    first = [
        Item(id, features={"price": 3.1 + row * row / 7, "brand": "Acme" if row % 3 else "Bolt"})
        for row, id in enumerate(IDS)
    ]
    later = [Item("new", features={"price": 71 / 7}), Item("i4", features={"brand": "Crux"})]
    shop = open_shop(policy="cascade-lin-ts", items=first)
    shop.feedback(shop.recommend(), 1)
    shop.put_items(later)
    shop.feedback(shop.recommend(), 0)
    forked = shop.fork("cascade-mixed", "forked")
    shop.service.create("new", policy="cascade-mixed", k=K, items=first)
    shop.model("new").put_items(later)
    mine, other = (shop.model(name).internals for name in ("forked", "new"))
    np.testing.assert_array_equal(mine.engine.features, other.engine.features)
    assert mine.catalog.values == other.catalog.values
    assert forked.describe()["notes"][0] == "events up to 4 are those of shop (cascade-lin-ts)"
    # Its encoder goes on as that of the origin.
    forked.put_items([Item("more", features={"price": 9, "brand": "Acme"})])
    assert reproduce(forked).equal == 2
    assert forked.audit().equal


def test_a_policy_that_is_given_the_same_gets_the_same_bytes(open_shop):
    # Of these numbers, a scale that is fitted again differs in its last digit.
    shop = open_shop(policy="cascade-lin-ts", features=UNROUNDED * 7 * np.pi)
    run_eventful(shop)
    forked = shop.fork("cascade-lin-ts:sigma=2", "forked")
    assert raw_events(forked)[1:] == raw_events(shop)[1:]


def test_a_fork_draws_slates_of_its_own_and_the_same_policy_the_same(shop):
    play(shop, 3)
    forked, copy = shop.fork("cascade-lin-ts", "forked"), fork_of(shop, "copy")
    shop.run_background()
    slates = [
        [model.recommend(request_id=str(number)).items for number in range(20)]
        for model in (shop, copy, forked)
    ]
    assert slates[0] == slates[1] != slates[2]


def test_slates_of_a_fork_of_a_fork_stay_their_origins(shop, open_shop, tmp_path):
    calls = run_eventful(shop)
    second = shop.fork("cascade-mixed", "second")
    put = call("put_items", [Item("n2", features=[5.5, 0.75, 2.0, 0.1])])
    put(second)
    calls += [put, *play(second, 12)]
    third = second.fork("cascade-lin-ts", "third")
    new = open_shop(tmp_path / "new.db", policy="cascade-lin-ts", features=PRICES)
    for each in calls:
        each(new)
    check_same(third, new)
    check_has_logs_of(third, shop, second)
    third.feedback(third.recommend(), 0)
    audit, n = reproduce(third), len(feedback_of(shop))
    assert (audit.equal, audit.differing, audit.not_evaluable) == (n + 13, 0, {})
    assert audit.by_origin == {"shop (cascade-lin-ts)": n, "second (cascade-mixed)": 12}
    # A file of it needs no origin to be there.
    content = b"".join(third.export())
    for name in ("shop", "second", "third"):
        shop.service.delete(name)
    shop.service.import_model("copy", content)
    assert reproduce(shop.model("copy"))._replace(name="third") == audit


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_shop_with_a_baseline_a_trial_and_timeouts_is_forked(open_shop, policy):
    shop = open_shop(policy="cascade-mixed", no_click_after=60.0, tuning=BY_HAND)
    shop.set_baseline(IDS[:5], 0.3)
    shop.start_trial({"policy": 0.5, "baseline": 0.3, "policy:cascade-ts": 0.2})
    late = []
    for step in range(60):
        slate = shop.recommend(unit=f"user {step % 17}")
        if step % 5:
            shop.feedback(slate, (None, 0, 1)[step % 3])
        else:
            late.append(slate)
    shop.change_trial_shares({"policy": 0.8, "baseline": 0.1, "policy:cascade-ts": 0.1})
    shop.service.clock.move(61)
    shop.run_background()
    for slate in late[:4]:
        assert shop.feedback(slate, 1).status == "corrected"
    wanted = reproduce(shop)
    assert wanted.equal > 30
    assert wanted.differing == 0
    made = fork(shop.service.store, shop.service.store, entry_of(shop), "forked", policy)
    shop.run_background()
    forked = shop.model("forked")
    audit = reproduce(forked)
    assert audit._replace(name="shop", by_origin={}) == wanted
    assert replay(forked) == forked.digest()
    check_refused(forked.trial_report, "model", "unknown")
    facts = forked.internals.launch.facts()
    assert (facts["items"], facts["pages"]) == (IDS[:5], 0), "its own policy has shown none"
    assert shop.describe()["recommended"] == 60
    described = forked.describe()
    assert (described["no_click_after"], described["recommended"]) == (60.0, 0)
    assert described["slates"] == 60
    # A policy that cannot take back leaves late clicks out.
    late_clicks = (0, 4) if policy == "cascade-ts" else (4, 0)
    assert (made.left_out, made.late_clicks, described["corrected"]) == (0, *late_clicks)
    if policy == "cascade-ts":
        clicks = {event["seq"]: event["click"] for event in shop.events() if "click" in event}
        corrections = [event for event in shop.events() if event["kind"] == "correction"]
        for event in corrections:
            clicks[event["corrects"]] = event["click"]
            del clicks[event["seq"]]
        examined = sum(K if click is None else click + 1 for click in clicks.values())
        assert forked.state()["examined"].sum() == examined


def test_feedback_for_earlier_slates_goes_to_the_old_model(shop):
    play(shop, 3)
    slate = shop.recommend()
    forked = shop.fork(NEW, "forked")
    check_refused(lambda: forked.feedback(slate, 0), "token", "unknown")
    assert shop.feedback(slate, 0).seq == 5
    assert (forked.seq, forked.describe()["slates"]) == (4, 3)


def test_each_kind_of_event_can_be_copied():
    assert {*COPIES} == {*Kind}


def test_an_archived_fork_needs_the_file_to_reproduce_copied_slates(shop, tmp_path, monkeypatch):
    play(shop, 20)
    forked = shop.fork(NEW, "forked")
    move_to_archive(forked, 11, tmp_path / "old")
    assert reproduce(forked).not_evaluable == {ARCHIVED: 11}
    audit = reproduce(forked, tmp_path / "old")
    assert (audit.equal, audit.differing, audit.not_evaluable) == (20, 0, {})
    # Where the policy that drew them is not installed, or in another version, they cannot be reproduced.
    monkeypatch.setattr(OURS["cascade-lin-ts"], "version", 99)
    assert reproduce(forked, tmp_path / "old").not_evaluable == {NOT_HERE: 20}
