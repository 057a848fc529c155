"""The probabilities of the slates of a log: what is mixed in, and what is refused."""

import json
from functools import partial

import duckdb
import numpy as np
import pytest

from firstclick.cli import main
from firstclick.evaluation.logged_propensities import (
    HOLDOUT,
    logged_propensities,
)
from firstclick.evaluation.propensities.places import uniform_chances
from firstclick.evaluation.propensities.slate_propensity import slate_propensity
from firstclick.serve.log.drawn import NOT_RECORDED
from firstclick.serve.log.events import read_feedback
from firstclick.serve.model.sources import OTHER_ARM
from tests.support.launching import drawn_of, events_of, slates_of
from tests.support.shop import items

N, K = 5, 2
LIST = [7, "i1", "i4"]


@pytest.fixture
def open_small(open_shop):
    """A shop of five items with slates of two, that counts."""
    return partial(open_shop, items=items(features=False)[:N], k=K)


def play(shop, n, seed=1, **asked):
    """Slates and synthetic clicks; the item i2 is liked."""
    draw = np.random.default_rng(seed)
    for number in range(n):
        slate = shop.recommend(request_id=f"{seed}-{number}", **asked)
        likes = [position for position, item in enumerate(slate.items) if item == "i2"]
        click = likes[0] if likes and draw.random() < 0.6 else None
        shop.feedback(slate, click)


def of(shop, **more):
    stored = next(one for one in shop.service.store.models() if one.name == shop.name)
    return logged_propensities(shop.service.store, stored, **more)


def chances(slate):
    return slate.propensity.chances


def check_weights(found, first=N, whole=N * (N - 1)):
    """A prefix that comes with probability p weighs 1/p: so weights are in the mean as many as there are
    prefixes. Wrong probabilities anywhere in the log move that mean. False alarm: 1 in 100,000."""
    for j, wanted in enumerate((first, whole)):
        weights = np.array([1 / chances(one)[j] for one in found.slates])
        assert weights.mean() == pytest.approx(wanted, abs=4.5 * weights.std() / np.sqrt(len(weights)))
        # And the bound is not so wide that anything would do.
        assert weights.std() / np.sqrt(len(weights)) < 0.15 * wanted


def test_exploration_is_mixed_in(open_small):
    shop = open_small(explore=0.3)
    play(shop, 300)
    found = of(shop)
    assert found.methods() == {"quadrature": 300}
    assert all(one.drawn_again and one.same_build for one in found.slates)
    assert 0.2 < np.mean([one.explored for one in found.slates]) < 0.4
    check_weights(found)
    # The last slate: from what the model knows now, but for that slate itself.
    (last,) = of(shop, last=1).slates
    np.testing.assert_allclose(chances(last), chances(found.slates[-1]))
    model = shop.service.model("shop")
    asked = model.request_of(drawn_of(events_of(shop.service)[-1]), ())
    uniform = uniform_chances(asked, N, np.array(last.rows))
    np.testing.assert_allclose(uniform, [1 / 5, 1 / 20])
    near = 0.7 * slate_propensity(model.engine, asked, np.array(last.rows)).chances + 0.3 * uniform
    np.testing.assert_allclose(chances(last), near, rtol=0.2)


def test_baseline_of_the_guardrail_is_mixed_in(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=0.5)
    play(shop, 300)
    found = of(shop)
    assert {one.choice for one in found.slates} == {"policy", "floor"}
    check_weights(found)
    by_list = next(one for one in found.slates if one.choice == "floor")
    assert chances(by_list)[1] > 1 - by_list.policy_share


def test_trial_without_a_limit_is_evaluated_over_its_arms(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=1)
    shop.start_trial({"policy": 0.7, "baseline": 0.3})
    play(shop, 300)
    found = of(shop)
    assert {one.choice for one in found.slates} == {"policy", "holdout"}
    assert not any(one.given_arm for one in found.slates)
    check_weights(found)
    holdout = next(one for one in found.slates if one.choice == "holdout")
    assert 0.3 < chances(holdout)[1] < 0.9


def test_trial_with_a_guardrail_is_evaluated_within_its_arm(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=0.5)
    shop.start_trial({"policy": 0.5, "baseline": 0.5})
    play(shop, 20, unit=shop.unit_in(0))
    play(shop, 10, seed=2, unit=shop.unit_in(1))
    found = of(shop)
    assert found.reasons() == {HOLDOUT: 10}
    assert sum(one.given_arm for one in found.slates if one.propensity is not None) == 20
    for one in found.slates[:20]:
        assert chances(one)[0] >= one.policy_share * 0.5 / N - 1e-12


def test_slates_of_other_arms_have_no_propensities(open_small):
    shop = open_small(explore=0.5, baseline=LIST, max_loss=1)
    shop.start_trial({"policy": 0.5, "policy:random": 0.5})
    play(shop, 10, unit=shop.unit_in(1))
    play(shop, 5, seed=2, unit=shop.unit_in(0), candidates=["i1", "i2", "i4"], exclude=["i4"])
    found = of(shop)
    assert found.reasons() == {OTHER_ARM: 10}
    assert all(one.given_arm for one in found.slates[10:])
    assert {one.candidates for one in found.slates[10:]} == {(1, 2)}
    for one in found.slates[10:]:
        assert chances(one)[0] == pytest.approx(chances(one)[1])


def test_requests_rollbacks_and_forks(open_small):
    shop = open_small(explore=0.2)
    play(shop, 30)
    shop.roll_back(15)
    play(shop, 20, seed=2, exclude=["i0"])
    play(shop, 10, seed=3, pinned={0: "i1"})
    found = of(shop)
    assert found.methods() == {"quadrature": 60}
    assert all(one.drawn_again for one in found.slates)
    assert {chances(one)[0] for one in found.slates[50:]} == {1.0}
    assert all(one.explore == 0.2 for one in found.slates)
    copy = shop.fork("random", "copy")
    play(copy, 20, seed=4)
    both = of(copy)
    assert [one.model for one in both.slates] == ["shop"] * 60 + ["copy"] * 20
    for one, again in zip(found.slates, both.slates, strict=False):
        np.testing.assert_array_equal(chances(one), chances(again))
    np.testing.assert_allclose(chances(both.slates[-1]), [1 / 5, 1 / 20])


def test_slate_without_a_record_of_its_draw_has_no_propensity(open_small):
    shop = open_small()
    play(shop, 5)
    store = shop.service.store
    event = slates_of(shop.service)[2]
    fields = read_feedback(event.payload).fields
    bare = event._replace(payload=event.payload[: -len(fields)])

    class Older:
        """The store, with an event as earlier versions wrote them."""

        def __getattr__(self, name):
            return getattr(store, name)

        def events(self, *args, **more):
            for chunk in store.events(*args, **more):
                yield [bare if one.seq == bare.seq else one for one in chunk]

    found = logged_propensities(Older(), next(iter(store.models())))
    assert found.reasons() == {NOT_RECORDED: 1}
    assert found.slates[2].propensity is None
    assert found.slates[2].rows == read_feedback(event.payload).rows
    assert found.methods() == {"quadrature": 4}


def test_command_writes_a_ranked_log(open_small, tmp_path, capsys, monkeypatch):
    with open_small(explore=0.25) as shop:
        play(shop, 40)
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
    assert run()[0] == 2
    code, printed = run("--overwrite", "--json", "--last", "7", "--jobs", "2")
    summary = json.loads(printed.out)
    assert (code, summary["slates"], summary["methods"]) == (0, 7, {"quadrature": 7})
    again = duckdb.sql(f"SELECT propensities FROM '{out}' ORDER BY seq").fetchall()
    assert [list(one) for (one,) in again] == table["propensities"][-7:]
    code, printed = run("--overwrite", "--relative-error", "0")
    assert (code, "relative-error" in printed.err) == (2, True)
