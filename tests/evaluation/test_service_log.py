"""The log of a model as a ranked log: slates and clicks, corrections and timeouts included."""

import json
from functools import partial

import duckdb
import numpy as np
import pytest

from firstclick.cli import main
from firstclick.evaluation.judged_slates import JudgedSlates
from firstclick.evaluation.logged_propensities import HOLDOUT, logged_propensities
from firstclick.evaluation.own_log import log_in_store
from firstclick.evaluation.own_propensities import OwnLogWithPropensities
from firstclick.evaluation.propensities.places import uniform_chances
from firstclick.evaluation.propensities.slate_propensity import slate_propensity
from firstclick.evaluation.result import CANNOT_SAY, CAUTION, OK
from firstclick.evaluation.run import evaluate
from firstclick.evaluation.spread import Spread
from firstclick.evaluation.target_specs import make_target, read_specs
from firstclick.evaluation.targets import FixedList, Uniform
from firstclick.logs.ranked_log import NOT_TOLD
from firstclick.serve import Item
from firstclick.serve.model.archive import archive
from firstclick.serve.model.replay import recover
from firstclick.serve.model.sources import OTHER_ARM
from firstclick.serve.store import open_store
from firstclick.streams import stream
from tests.support.clock import Clock
from tests.support.logs import drawn_of, entry_of, raw_events
from tests.support.shop import items, shop_at


@pytest.fixture
def open_random(open_shop):
    return partial(open_shop, policy="random", features=False, no_click_after=60.0, clock=Clock())


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "shop.db")


def batch_of(log):
    (batch,) = log.batches()
    return batch


def play(shop, *clicks):
    for click in clicks:
        shop.feedback(shop.recommend(), click=click)


@pytest.fixture
def slates(open_random):
    """Five slates: a click, two clicks with `examined`, no click, a timeout, one with a late click."""
    clock = Clock()
    with open_random(clock=clock) as shop:
        slates = [shop.recommend() for _ in range(3)]
        slates.append(shop.recommend(k=2))
        shop.feedback(slates[0], click=1)
        shop.feedback(slates[1], clicks=[0, 2], examined=3)
        shop.feedback(slates[2], click=None)
        slates.append(shop.recommend())
        clock.move(61)
        shop.run_background()
        shop.feedback(slates[-1], click=2)
        return slates


def test_slates_clicks_and_numbers_are_those_of_the_events(slates, store):
    log = log_in_store(store, "shop")
    batch = batch_of(log)
    assert log.k == 3
    shown = [[log.items[code] for code in row if code >= 0] for row in batch.items]
    assert shown == [list(slate.items) for slate in slates]
    assert batch.clicks.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert batch.examined.tolist()[:2] == [NOT_TOLD, 3]
    assert batch.reported.all()
    assert (np.diff(batch.numbers) > 0).all()
    assert log.timed_out == 1
    # A timeout can be read as not reported; the correction is a report.
    batch = batch_of(log_in_store(store, "shop", timed_out="not-reported"))
    assert batch.reported.tolist() == [True, True, True, False, True]


def test_archived_log_is_read_from_the_store_and_its_files(open_random, store, tmp_path):
    with open_random() as shop:
        play(shop, 0, 1, 2, None)
    before = batch_of(log_in_store(store, "shop"))
    out = tmp_path / "old.archive"
    with open_store(store) as opened:
        (stored,) = opened.models()
        archive(opened, stored, int(before.numbers[2]), out, token_days=0.0)
    rest = log_in_store(store, "shop")
    assert batch_of(rest).numbers.tolist() == before.numbers[2:].tolist()
    again = batch_of(log_in_store(store, "shop", archives=[out]))
    assert np.array_equal(again.items, before.items)
    assert np.array_equal(again.clicks, before.clicks)


def test_slates_rolled_back_were_shown_and_slates_not_reported_are_counted(open_random, store):
    clock = Clock()
    with open_random(policy="cascade-ts", clock=clock, no_click_after=86_400.0) as shop:
        play(shop, 0, 1, 2)
        shop.roll_back(1)
        play(shop, None)
        for _ in range(3):
            shop.recommend()
        clock.move(3600)
        shop.run_background()
    log = log_in_store(store, "shop")
    assert batch_of(log).clicks.sum(axis=1).tolist() == [1, 1, 1, 0]
    assert log.unreported == 3


def test_only_uniform_slates_have_their_propensities(open_random, store):
    with open_random(policy="cascade-ts", explore=1.0) as shop:
        play(shop, 0)
        shop.feedback(shop.recommend(k=2), click=0)
        shop.service.create("other", policy="cascade-ts", k=3, items=items(features=False), explore=0.5)
        play(shop.model("other"), 0)
    chances = [1 / 13, 1 / 13 / 12, 1 / 13 / 12 / 11]
    found = batch_of(log_in_store(store, "shop")).propensities
    np.testing.assert_allclose(found, [chances, [chances[0], chances[1], chances[1]]], rtol=1e-12)
    assert batch_of(log_in_store(store, "other")).propensities is None


NAMES = ["tea", "coffee", "cocoa", "milk"]


@pytest.fixture
def log_of(open_shop, store):
    def log_of(policy, n):
        """Slates of 2 of 4 items, every tenth among candidates; tea is clicked if it is shown first."""
        with open_shop(policy=policy, items=[Item(name) for name in NAMES], k=2, explore=0.25) as shop:
            for number in range(n):
                slate = shop.recommend(candidates=NAMES[:3] if number % 10 == 9 else None)
                shop.feedback(slate, click=0 if slate.items[0] == "tea" else None)
        return OwnLogWithPropensities(log_in_store(store, "shop"))

    return log_of


def test_late_feedback_is_weighted_by_what_was_known_when_the_slate_was_drawn(open_shop, store):
    with open_shop(policy="random", items=[Item(name) for name in NAMES], k=2) as shop:
        late = [shop.recommend() for _ in range(5)]
        for slate in [shop.recommend() for _ in range(20)]:
            shop.feedback(slate, click=0)
        for slate in [*late, shop.recommend()]:
            shop.feedback(slate, click=None)
    log = OwnLogWithPropensities(log_in_store(store, "shop"))
    (batch,) = log.batches()
    assert batch.numbers.tolist() == list(range(2, 28))
    assert batch.drawn_from.tolist() == [1] * 25 + [21]
    # The spread falls from 9 to 4 at event 10: no slate but the last was drawn after it.
    target = Uniform()
    target.start(log)
    squares = np.array([[9.0, 9.0], [4.0, 4.0]])
    (weighted,) = JudgedSlates(log, target, None, batch.n, Spread(np.array([1, 10]), squares))
    assert weighted.spread[:, 0].tolist() == [9.0] * 25 + [4.0]


def test_spread_of_a_list_is_one_over_its_probability(log_of):
    log = log_of("random", 60)
    (batch,) = log.batches()
    assert np.isnan(batch.propensities[9::10]).all()
    assert batch.propensities[0].tolist() == pytest.approx([1 / 4, 1 / 12])
    found = evaluate(log, {"random": Uniform()})
    assert found.left_out == {"without propensities": 6}
    assert any(note.startswith("6 slates are left out, because their request") for note in found.notes)
    # A target that is the logger has weights of 1.
    for target, squares in ((FixedList(["milk", "tea"]), [4.0, 12.0]), (Uniform(), [1.0, 1.0])):
        target.start(log)
        spread = log.spread_of(target)
        assert spread.squares == pytest.approx(np.tile(squares, (len(spread.events), 1)))
        assert spread.events[0] == 1


@pytest.mark.long
def test_propensities_are_those_of_the_model_when_the_slate_was_drawn(log_of):
    log = log_of("cascade-ts", 120)
    (batch,) = log.batches()
    for row in (3, 47, 111):
        model = recover(log._own.log, log._own.stored._replace(head=int(batch.numbers[row]) - 1))
        assert log._chances_now(model, batch.items[row]) == pytest.approx(batch.propensities[row], rel=1e-6)
    found = evaluate(log, {"random": Uniform()})
    assert "variance-stabilising weights" in found.answers[0].why


REPORTED, LATE, HALF = 900, 40, 400


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Uniform slates of a model that learns from them, all items alike. Forty slates were drawn first and
    reported last: their feedback is in the events from 902 on. And a fork of it, which went on alone."""
    place = str(tmp_path_factory.mktemp("learned") / "shop.db")
    random = stream(4, "clicks on any item")
    created = {"items": [Item(name) for name in NAMES], "k": 1, "policy": "cascade-ts", "seed": 1}
    with shop_at(place, explore=1.0, **created) as shop:
        late = [shop.recommend() for _ in range(LATE)]
        for number in range(REPORTED + LATE):
            slate = late[number - REPORTED] if number >= REPORTED else shop.recommend()
            shop.feedback(slate, click=0 if random.random() < 0.3 else None)
        copy = shop.fork("cascade-ts", "copy", seed=2)
        copy.feedback(copy.recommend(), click=None)
        shop.service.create("other", **created)
    return place


@pytest.fixture(scope="module")
def log(place):
    return log_in_store(place, "shop")


def answer(log, spec, place):
    (read,) = read_specs([spec])
    return evaluate(log, {spec: make_target(read, log, store=place)}, logger="fixed").answers[0]


@pytest.mark.parametrize("kind", ["greedy", "sample"])
def test_model_is_a_caution_on_slates_it_has_learned_from(log, place, kind):
    found = answer(log, f"{kind}:shop", place)
    assert (found.verdict, found.support["slates"]) == (CAUTION, REPORTED + LATE)
    assert found.reasons[-1].startswith("shop has learned from these slates")
    assert f"{kind}:shop,event=N" in found.reasons[-1]
    # A fork has learned from them too, and another model has not.
    assert answer(log, f"{kind}:copy", place).reasons[-1].startswith("copy has learned from these slates")
    other = answer(log, f"{kind}:other", place)
    assert other.verdict == OK, other.reasons
    assert "has not learned from" in other.notes[0]


def test_model_as_it_was_is_evaluated_on_slates_drawn_later(log, place):
    found = answer(log, f"greedy:shop,event={HALF}", place)
    assert found.verdict == OK, found.reasons
    # Event 1 is the creation. Slate n of those reported at once was drawn after event n; the late ones, after
    # the first event, although they were reported last.
    assert found.support["slates"] == REPORTED - HALF + 1
    (batch,) = log.batches()
    later = batch.clicks[HALF - 1 : REPORTED].sum() / (REPORTED - HALF + 1)
    assert "501 slates" in found.notes[0]
    assert f"{later:.4g} clicks" in found.notes[0]
    assert found.value.value - found.difference.value == pytest.approx(later)
    # Of the last event there are none.
    found = answer(log, f"greedy:shop,event={log.stored.head}", place)
    assert (found.verdict, found.difference, len(found.reasons)) == (CANNOT_SAY, None, 1)
    assert f"after event {log.stored.head}" in found.reasons[0]


N, K = 5, 2
LIST = [7, "i1", "i4"]


@pytest.fixture
def open_small(open_shop):
    """A shop of five items with slates of two, that counts."""
    return partial(open_shop, items=items(features=False)[:N], k=K)


def play_liking(shop, n, seed=1, **request):
    """Slates and simulated clicks; the item i2 is attractive."""
    draw = np.random.default_rng(seed)
    for number in range(n):
        slate = shop.recommend(request_id=f"{seed}-{number}", **request)
        shown = "i2" in slate.items and draw.random() < 0.6
        shop.feedback(slate, slate.items.index("i2") if shown else None)


def of(shop, **more):
    return logged_propensities(shop.service.store, entry_of(shop), **more)


def chances(slate):
    return slate.propensity.chances


def check_weights(found, first=N, whole=N * (N - 1)):
    """A prefix of probability p has the weight 1/p: the mean weight is the number of prefixes. Wrong
    probabilities anywhere in the log change that mean. False alarm: 1 in 100,000."""
    for j, wanted in enumerate((first, whole)):
        weights = np.array([1 / chances(one)[j] for one in found.slates])
        assert weights.mean() == pytest.approx(wanted, abs=4.5 * weights.std() / np.sqrt(len(weights)))
        assert weights.std() / np.sqrt(len(weights)) < 0.15 * wanted


def test_exploration_is_mixed_in(open_small):
    shop = open_small(explore=0.3)
    play_liking(shop, 300)
    found = of(shop)
    assert found.methods() == {"quadrature": 300}
    assert all(one.drawn_again and one.same_build for one in found.slates)
    assert 0.2 < np.mean([one.explored for one in found.slates]) < 0.4
    check_weights(found)
    # The last slate: from what the model knows now, but for that slate itself.
    (last,) = of(shop, last=1).slates
    np.testing.assert_allclose(chances(last), chances(found.slates[-1]))
    model = shop.internals
    asked = model.request_of(drawn_of(raw_events(shop)[-1]), ())
    uniform = uniform_chances(asked, N, np.array(last.rows))
    np.testing.assert_allclose(uniform, [1 / 5, 1 / 20])
    near = 0.7 * slate_propensity(model.engine, asked, np.array(last.rows)).chances + 0.3 * uniform
    np.testing.assert_allclose(chances(last), near, rtol=0.2)


def test_baseline_of_the_guardrail_is_mixed_in(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=0.5)
    play_liking(shop, 300)
    found = of(shop)
    assert {one.choice for one in found.slates} == {"policy", "floor"}
    check_weights(found)
    by_list = next(one for one in found.slates if one.choice == "floor")
    assert chances(by_list)[1] > 1 - by_list.policy_share


def test_trial_without_a_limit_is_evaluated_over_its_arms(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=1)
    shop.start_trial({"policy": 0.7, "baseline": 0.3})
    play_liking(shop, 300)
    found = of(shop)
    assert {one.choice for one in found.slates} == {"policy", "holdout"}
    assert not any(one.given_arm for one in found.slates)
    check_weights(found)
    holdout = next(one for one in found.slates if one.choice == "holdout")
    assert 0.3 < chances(holdout)[1] < 0.9


def test_trial_with_a_guardrail_is_evaluated_within_its_arm(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=0.5)
    shop.start_trial({"policy": 0.5, "baseline": 0.5})
    play_liking(shop, 20, unit=shop.unit_in(0))
    play_liking(shop, 10, seed=2, unit=shop.unit_in(1))
    found = of(shop)
    assert found.reasons() == {HOLDOUT: 10}
    assert sum(one.given_arm for one in found.slates if one.propensity is not None) == 20
    for one in found.slates[:20]:
        assert chances(one)[0] >= one.policy_share * 0.5 / N - 1e-12


def test_slates_of_other_arms_have_no_propensities(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=1)
    shop.start_trial({"policy": 0.5, "policy:random": 0.5})
    play_liking(shop, 10, unit=shop.unit_in(1))
    play_liking(shop, 5, seed=2, unit=shop.unit_in(0), candidates=["i1", "i2", "i4"], exclude=["i4"])
    found = of(shop)
    assert found.reasons() == {OTHER_ARM: 10}
    assert all(one.given_arm for one in found.slates[10:])
    assert {one.candidates for one in found.slates[10:]} == {(1, 2)}
    for one in found.slates[10:]:
        assert chances(one)[0] == pytest.approx(chances(one)[1])


def test_requests_rollbacks_and_forks(open_small):
    shop = open_small(explore=0.2)
    play_liking(shop, 30)
    shop.roll_back(15)
    play_liking(shop, 20, seed=2, exclude=["i0"])
    play_liking(shop, 10, seed=3, pinned={0: "i1"})
    found = of(shop)
    assert found.methods() == {"quadrature": 60}
    assert all(one.drawn_again for one in found.slates)
    assert {chances(one)[0] for one in found.slates[50:]} == {1.0}
    assert all(one.explore == 0.2 for one in found.slates)
    copy = shop.fork("random", "copy")
    play_liking(copy, 20, seed=4)
    both = of(copy)
    assert [one.model for one in both.slates] == ["shop"] * 60 + ["copy"] * 20
    for one, again in zip(found.slates, both.slates, strict=False):
        np.testing.assert_array_equal(chances(one), chances(again))
    np.testing.assert_allclose(chances(both.slates[-1]), [1 / 5, 1 / 20])


def test_command_writes_a_ranked_log(open_small, tmp_path, capsys, monkeypatch):
    with open_small(explore=0.25) as shop:
        play_liking(shop, 40)
    out = tmp_path / "slates.parquet"

    def run(*words):
        line = ["evaluate", "propensities", "shop", "--store", str(tmp_path / "shop.db"), "--out", str(out)]
        monkeypatch.setattr("sys.argv", ["firstclick", *line, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr()

    code, printed = run()
    assert (code, "40 slates, 40 with probabilities" in printed.out) == (0, True)
    rows = duckdb.sql(f"SELECT * FROM '{out}' ORDER BY seq")
    table = {name: [row[place] for row in rows.fetchall()] for place, name in enumerate(rows.columns)}
    assert len(table["items"][0]) == len(table["propensities"][0]) == len(table["errors"][0]) == K
    assert all(0.05 <= one[0] <= 1 for one in table["propensities"])
    assert {len(one) for one in table["clicks"]} == {0, 1}
    assert set(table["method"]) == {"quadrature"}
    assert table["drawn_from"] == [seq - 1 for seq in table["seq"]]
    assert run()[0] == 2, "the file is there already"
    assert run("--overwrite", "--relative-error", "0")[0] == 2
    code, printed = run("--overwrite", "--json", "--last", "7", "--jobs", "2")
    summary = json.loads(printed.out)
    assert (code, summary["slates"], summary["methods"]) == (0, 7, {"quadrature": 7})
    again = duckdb.sql(f"SELECT propensities FROM '{out}' ORDER BY seq").fetchall()
    assert [list(one) for (one,) in again] == table["propensities"][-7:]
