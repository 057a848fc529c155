"""A model's own log with probabilities from its fold, and how widely the weights of a target spread."""

import numpy as np
import pytest

from firstclick.evaluation.judged_slates import JudgedSlates
from firstclick.evaluation.own_log import log_in_store
from firstclick.evaluation.own_propensities import OwnLogWithPropensities
from firstclick.evaluation.run import evaluate
from firstclick.evaluation.spread import Spread
from firstclick.evaluation.targets import FixedList, Uniform
from firstclick.serve import Item, open_service
from firstclick.serve.model.replay import recover

NAMES = ["tea", "coffee", "cocoa", "milk"]


def shop(place, policy, n):
    """Slates of 2 of 4 items, every tenth among candidates; tea is clicked if it is shown first."""
    with open_service(str(place)) as service:
        items = [Item(name) for name in NAMES]
        service.create("shop", items=items, k=2, policy=policy, seed=1, explore=0.25)
        for number in range(n):
            slate = service.recommend("shop", candidates=NAMES[:3] if number % 10 == 9 else None)
            service.feedback("shop", slate, click=0 if slate.items[0] == "tea" else None)
    return OwnLogWithPropensities(log_in_store(str(place), "shop"))


def test_spread_is_that_known_after_an_event():
    known = Spread(np.array([1, 10, 20]), np.array([[5.0], [3.0], [2.0]]))
    assert known.known_after(np.array([1, 2, 9, 10, 19, 20, 99])).ravel().tolist() == [5, 5, 5, 3, 3, 2, 2]


def test_late_feedback_is_weighted_by_what_was_known_when_the_slate_was_drawn(tmp_path):
    place = str(tmp_path / "shop.db")
    with open_service(place) as service:
        service.create("shop", items=[Item(name) for name in NAMES], k=2, policy="random", seed=1)
        late = [service.recommend("shop") for _ in range(5)]
        for slate in [service.recommend("shop") for _ in range(20)]:
            service.feedback("shop", slate, click=0)
        for slate in [*late, service.recommend("shop")]:
            service.feedback("shop", slate, click=None)
    log = OwnLogWithPropensities(log_in_store(place, "shop"))
    (batch,) = log.batches()
    assert batch.numbers.tolist() == list(range(2, 28))
    assert batch.drawn_from.tolist() == [1] * 25 + [21]
    # The spread falls from 9 to 4 at event 10: no slate but the last was drawn after it.
    target = Uniform()
    target.start(log)
    squares = np.array([[9.0, 9.0], [4.0, 4.0]])
    (weighted,) = JudgedSlates(log, target, None, batch.n, Spread(np.array([1, 10]), squares))
    assert weighted.spread[:, 0].tolist() == [9.0] * 25 + [4.0]


def test_spread_of_a_list_is_one_over_its_probability_and_candidates_are_left_out(tmp_path):
    log = shop(tmp_path / "shop.db", "random", 60)
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
def test_propensities_are_those_of_the_model_when_the_slate_was_drawn(tmp_path):
    log = shop(tmp_path / "shop.db", "cascade-ts", 120)
    (batch,) = log.batches()
    for row in (3, 47, 111):
        model = recover(log._own.log, log._own.stored._replace(head=int(batch.numbers[row]) - 1))
        assert log._chances_now(model, batch.items[row]) == pytest.approx(batch.propensities[row], rel=1e-6)
    found = evaluate(log, {"random": Uniform()})
    assert "variance-stabilising weights" in found.answers[0].why
