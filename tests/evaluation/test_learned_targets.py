"""Policies that have learned from the log that they are judged on."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.evaluation.own_log import log_in_store
from firstclick.evaluation.result import CANNOT_SAY, CAUTION, OK
from firstclick.evaluation.run import evaluate
from firstclick.evaluation.target_specs import make_target, read_specs
from firstclick.serve import Item, open_service
from firstclick.streams import stream
from tests.support.arrays_log import hand_ordered_log

NAMES = ["tea", "coffee", "cocoa", "milk"]
N, LATE, HALF = 900, 40, 400


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Uniform slates of a model that learns from them, all items alike. Forty slates were drawn first and
    reported last: their feedback is in the events from 902 on. And a fork of it, which went on alone."""
    place = str(tmp_path_factory.mktemp("learned") / "shop.db")
    random = stream(4, "clicks on any item")
    created = {"items": [Item(name) for name in NAMES], "k": 1, "policy": "cascade-ts", "seed": 1}
    with open_service(place) as service:
        service.create("shop", explore=1.0, **created)
        late = [service.recommend("shop") for _ in range(LATE)]
        for number in range(N + LATE):
            slate = late[number - N] if number >= N else service.recommend("shop")
            service.feedback("shop", slate, click=0 if random.random() < 0.3 else None)
        service.fork("shop", "cascade-ts", "copy", seed=2)
        service.feedback("copy", service.recommend("copy"), click=None)
        service.create("other", **created)
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
    assert (found.verdict, found.support["slates"]) == (CAUTION, N + LATE)
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
    assert found.support["slates"] == N - HALF + 1
    (batch,) = log.batches()
    later = batch.clicks[HALF - 1 : N].sum() / (N - HALF + 1)
    assert "501 slates" in found.notes[0]
    assert f"{later:.4g} clicks" in found.notes[0]
    assert found.value.value - found.difference.value == pytest.approx(later)
    # Of the last event there are none.
    found = answer(log, f"greedy:shop,event={log.stored.head}", place)
    assert (found.verdict, found.difference, len(found.reasons)) == (CANNOT_SAY, None, 1)
    assert f"after event {log.stored.head}" in found.reasons[0]


def test_saved_ranker_has_a_note_on_what_it_may_have_learned_from(tmp_path):
    log = hand_ordered_log(n=3000, explore=1.0)
    saved = tmp_path / "ranker.npz"
    Ranker(Catalog(["tea", "coffee", "cocoa", "milk", "water"]), k=3, policy="cascade-ts", seed=1).save(saved)
    (spec,) = read_specs([f"sample:{saved}"])
    (found,) = evaluate(log, {"it": make_target(spec, log)}).answers
    assert np.isfinite(found.support["positions"][0]["mean_weight"])
    assert any("has not learned from" in note for note in found.notes)
