"""The probabilities of the slates of a log: what is mixed in, and what is refused."""

import json

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
from firstclick.serve.log.events import Kind, read_feedback
from firstclick.serve.model.sources import OTHER_ARM
from firstclick.serve.service import open_service
from tests.support.launching import drawn_of, events_of, unit_in
from tests.support.made_log import bare, made_items

N, K = 5, 2
LIST = ["i3", "i1", "i4"]


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place):
    with open_service(place) as service:
        yield service


def create(service, policy="cascade-ts", **more):
    service.create("shop", policy=policy, k=K, items=bare(made_items(N)), seed=5, **more)


def play(service, n, seed=1, name="shop", **asked):
    """Slates and made-up clicks; the item i2 is liked."""
    draw = np.random.default_rng(seed)
    for number in range(n):
        slate = service.recommend(name, request_id=f"{seed}-{number}", **asked)
        likes = [place for place, item in enumerate(slate.items) if item == "i2"]
        click = likes[0] if likes and draw.random() < 0.6 else None
        service.feedback(name, slate, click)


def of(service, name="shop", **more):
    stored = next(one for one in service.store.models() if one.name == name)
    return logged_propensities(service.store, stored, **more)


def chances(slate):
    assert slate.propensity is not None, slate.not_evaluable
    return slate.propensity.chances


def check_weights(found, first=N, whole=N * (N - 1)):
    """A prefix that comes with probability p weighs 1/p: so weights are in the mean as many as there are
    prefixes. Wrong probabilities anywhere in the log move that mean. False alarm: 1 in 100,000."""
    for j, wanted in enumerate((first, whole)):
        weights = np.array([1 / chances(one)[j] for one in found.slates])
        assert weights.mean() == pytest.approx(wanted, abs=4.5 * weights.std() / np.sqrt(len(weights)))
        # And the bound is not so wide that anything would do.
        assert weights.std() / np.sqrt(len(weights)) < 0.15 * wanted


def test_exploration_is_mixed_in(service):
    create(service, explore=0.3)
    play(service, 300)
    found = of(service)
    assert found.methods() == {"quadrature": 300}
    assert all(one.drawn_again and one.same_build for one in found.slates)
    assert 0.2 < np.mean([one.explored for one in found.slates]) < 0.4
    check_weights(found)
    # The last slate: from what the model knows now, but for that slate itself.
    model = service.model("shop")
    event = events_of(service)[-1]
    before = of(service, last=1).slates
    assert len(before) == 1
    np.testing.assert_allclose(chances(before[0]), chances(found.slates[-1]))
    asked = model.request_of(drawn_of(event), ())
    uniform = uniform_chances(asked, N, np.array(before[0].rows))
    np.testing.assert_allclose(uniform, [1 / 5, 1 / 20])
    near = 0.7 * slate_propensity(model.engine, asked, np.array(before[0].rows)).chances + 0.3 * uniform
    np.testing.assert_allclose(chances(before[0]), near, rtol=0.2)


def test_the_list_and_its_floor_are_mixed_in(service):
    create(service, explore=0.5, baseline=LIST, max_loss=0.5)
    play(service, 300)
    found = of(service)
    assert {one.choice for one in found.slates} == {"policy", "floor"}
    check_weights(found)
    by_list = next(one for one in found.slates if one.choice == "floor")
    share = by_list.policy_share
    assert share is not None
    assert chances(by_list)[1] > 1 - share


def test_a_trial_without_a_limit_is_told_over_its_arms(service):
    create(service, explore=0.5, baseline=LIST, max_loss=1)
    service.start_trial("shop", {"policy": 0.7, "baseline": 0.3})
    play(service, 300)
    found = of(service)
    assert {one.choice for one in found.slates} == {"policy", "holdout"}
    assert not any(one.given_arm for one in found.slates)
    check_weights(found)
    holdout = next(one for one in found.slates if one.choice == "holdout")
    assert 0.3 < chances(holdout)[1] < 0.9


def test_a_trial_with_a_floor_is_told_within_its_arm(service):
    create(service, explore=0.5, baseline=LIST, max_loss=0.5)
    service.start_trial("shop", {"policy": 0.5, "baseline": 0.5})
    play(service, 20, unit=unit_in(service, 0))
    play(service, 10, seed=2, unit=unit_in(service, 1))
    found = of(service)
    assert found.reasons() == {HOLDOUT: 10}
    assert sum(one.given_arm for one in found.slates if one.propensity is not None) == 20
    for one in found.slates[:20]:
        assert one.policy_share is not None
        assert chances(one)[0] >= one.policy_share * 0.5 / N - 1e-12


def test_arms_of_other_models_are_refused(service):
    create(service, explore=0.5, baseline=LIST, max_loss=1)
    service.start_trial("shop", {"policy": 0.5, "policy:random": 0.5})
    play(service, 10, unit=unit_in(service, 1))
    play(service, 5, seed=2, unit=unit_in(service, 0), candidates=["i1", "i2", "i3"], exclude=["i3"])
    found = of(service)
    assert found.reasons() == {OTHER_ARM: 10}
    assert all(one.given_arm for one in found.slates[10:])
    assert {one.candidates for one in found.slates[10:]} == {(1, 2)}
    for one in found.slates[10:]:
        assert chances(one)[0] == pytest.approx(chances(one)[1])


def test_requests_rollbacks_and_forks(service):
    create(service, explore=0.2)
    play(service, 30)
    service.roll_back("shop", 15)
    play(service, 20, seed=2, exclude=["i0"])
    play(service, 10, seed=3, pinned={0: "i1"})
    found = of(service)
    assert found.methods() == {"quadrature": 60}
    assert all(one.drawn_again for one in found.slates)
    assert {chances(one)[0] for one in found.slates[50:]} == {1.0}
    assert all(one.explore == 0.2 for one in found.slates)
    service.fork("shop", "random", "copy")
    play(service, 20, seed=4, name="copy")
    both = of(service, "copy")
    assert [one.model for one in both.slates] == ["shop"] * 60 + ["copy"] * 20
    for one, again in zip(found.slates, both.slates, strict=False):
        np.testing.assert_array_equal(chances(one), chances(again))
    np.testing.assert_allclose(chances(both.slates[-1]), [1 / 5, 1 / 20])


def test_what_the_log_does_not_tell_is_refused(service):
    create(service)
    play(service, 5)
    slates = [event for event in events_of(service) if event.kind == Kind.FEEDBACK]
    fields = read_feedback(slates[2].payload).fields
    bare_event = slates[2]._replace(payload=slates[2].payload[: -len(fields)])

    class Older:
        """The store, with an event as earlier versions wrote them."""

        def __getattr__(self, name):
            return getattr(service.store, name)

        def events(self, *args, **more):
            for chunk in service.store.events(*args, **more):
                yield [bare_event if one.seq == bare_event.seq else one for one in chunk]

    stored = next(iter(service.store.models()))
    found = logged_propensities(Older(), stored)
    assert found.reasons() == {NOT_RECORDED: 1}
    assert found.slates[2].propensity is None
    assert found.slates[2].rows == read_feedback(slates[2].payload).rows
    assert found.methods() == {"quadrature": 4}


def test_the_command_writes_a_ranked_log(place, tmp_path, capsys, monkeypatch):
    with open_service(place) as service:
        create(service, explore=0.25)
        play(service, 40)
    out = tmp_path / "slates.parquet"

    def run(*words):
        line = ["evaluate", "propensities", "shop", "--store", place, "--out", str(out), *words]
        monkeypatch.setattr("sys.argv", ["firstclick", *line])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    assert run() == 0
    assert "shop: 40 slates, 40 with probabilities" in capsys.readouterr().out
    rows = duckdb.sql(f"SELECT * FROM '{out}' ORDER BY seq")
    table = {name: [row[place] for row in rows.fetchall()] for place, name in enumerate(rows.columns)}
    assert len(table["items"][0]) == len(table["propensities"][0]) == len(table["errors"][0]) == K
    assert all(0.05 <= one[0] <= 1 for one in table["propensities"])
    assert sum(one == [] for one in table["clicks"]) + sum(len(one) == 1 for one in table["clicks"]) == 40
    assert set(table["method"]) == {"quadrature"}
    assert table["drawn_from"] == [seq - 1 for seq in table["seq"]]
    assert run() == 2
    assert "is there already" in capsys.readouterr().err
    assert run("--overwrite", "--json", "--last", "7", "--jobs", "2") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["slates"], told["methods"]) == (7, {"quadrature": 7})
    again = duckdb.sql(f"SELECT propensities FROM '{out}' ORDER BY seq").fetchall()
    assert [list(one) for (one,) in again] == table["propensities"][-7:]
    assert run("--overwrite", "--relative-error", "0") == 2
    assert "relative-error must be above 0" in capsys.readouterr().err
