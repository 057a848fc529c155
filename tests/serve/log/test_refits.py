"""A model of the default policy that is stopped, rolled back or given items in the middle of a refit."""

from typing import NamedTuple

import numpy as np
import pytest

from firstclick.kernels.mixed import BETA2, BETAS, DONE, FITS, POINT, ROW, STAGE, P
from firstclick.registry import DEFAULT_POLICY
from firstclick.serve.log.events import Kind, feedback_payload, full_payload
from firstclick.serve.model.model import Model
from tests.support.made_log import N_FEATURES, K, Log, bare, made_items

# So many that a pass over all items takes as much work as the points of the grid: no phase is over too soon.
N_ITEMS = 80


FEATURES = pytest.mark.parametrize("features", [True, False])
STAGES = pytest.mark.parametrize("stage", [1, BETAS, FITS, FITS + 1])


class Moment(NamedTuple):
    """A model in the middle of a refit: the last event, its digest and its snapshot."""

    seq: int
    digest: str
    snapshot: bytes


def items(*, features, n=N_ITEMS, first=0):
    made = made_items(n, first=first)
    return made if features else bare(made)


def a_log(*, features, own=False):
    """A log in which several refits begin; with `own`, features come with requests too, and empty slates."""
    log = Log(DEFAULT_POLICY, items(features=features))
    draw = np.random.default_rng(4)
    for step in range(40):
        log.play(10, seed=step)
        if own:
            rows = draw.permutation(N_ITEMS)[:K].astype("<u4").tobytes()
            given = draw.normal(size=(K, N_FEATURES)).tobytes() if features else b""
            log._apply(log._add(Kind.FEEDBACK, full_payload([0, 2], 999, rows, examined=K, features=given)))
            log._apply(log._add(Kind.FEEDBACK, feedback_payload(None, 999, b"")))
    return log


def stage_of(model):
    return int(model.engine.state.refit[STAGE])


def moments(log):
    """The last moment of the log at each stage, a part of it done, of a refit that takes effect later."""
    found, model, done = {}, log.begin(), log.model.engine.state.refit[DONE]
    for event in log.events[1:]:
        model.apply([event], log.known_at)
        refit = model.engine.state.refit
        if refit[STAGE] > 0 and refit[ROW] + refit[POINT] > 0 and refit[DONE] < done:
            found[int(refit[STAGE])] = Moment(event.seq, model.digest(), model.snapshot()[1])
    return found


def arrays_of(state):
    return {name: array.tobytes() for name, array in state._asdict().items()}


@FEATURES
def test_snapshot_in_any_phase_of_a_refit_continues_bit_for_bit(features):
    log = a_log(features=features, own=True)
    wanted = log.model.digest()
    assert log.model.engine.state.refit[DONE] >= 6
    assert log.model_at(len(log.events)).digest() == wanted
    found = moments(log)
    assert set(found) == set(range(1, FITS + 2)), "some stage was never stopped at"
    for stage, moment in found.items():
        model = Model.restored(1, "made", moment.snapshot, log.created)
        assert (model.seq, stage_of(model)) == (moment.seq, stage)
        assert model.digest() == moment.digest
        done = model.engine.state.refit[DONE]
        model.apply(log.events[moment.seq :], log.known_at, together=1 + stage % 7)
        assert model.engine.state.refit[DONE] > done, "the refit it was stopped in never took effect"
        assert model.digest() == wanted, stage


@STAGES
@FEATURES
def test_rollback_into_a_refit_continues_the_refit(features, stage):
    log = a_log(features=features, own=True)
    moment = moments(log)[stage]
    later = [event.payload for event in log.events[moment.seq :]]
    wanted, stood = arrays_of(log.model.engine.state), arrays_of(log.model_at(moment.seq).engine.state)
    log.roll_back(moment.seq)
    assert arrays_of(log.model.engine.state) == stood
    assert stage_of(log.model) == stage
    # The same clicks as the first time teach the same.
    for payload in later:
        log._apply(log._add(Kind.FEEDBACK, payload))
    assert arrays_of(log.model.engine.state) == wanted
    # And other clicks, of slates that follow from what was known then.
    log.roll_back(moment.seq)
    log.play(60, seed=3)
    assert log.model_at(len(log.events)).digest() == log.model.digest()


@STAGES
@FEATURES
def test_items_change_in_the_middle_of_a_refit(features, stage):
    log = a_log(features=features)
    log.roll_back(moments(log)[stage].seq)
    done = log.model.engine.state.refit[DONE]
    new = made_items(3, first=200)
    log.put([*new[:2], new[2]._replace(features=20 * new[2].features)])
    log.withdraw("i3", "i200")
    if features:
        log.put([made_items(seed=9)[4]])  # other features
    assert stage_of(log.model) == stage
    _, content = log.model.snapshot()
    seq = log.model.seq
    for step in range(200):
        # New items are examined before the refit takes effect.
        rows = [N_ITEMS + 1 + step % 2, step % N_ITEMS, (7 * step + 1) % N_ITEMS]
        log.feedback(rows, step % 5 if step % 5 < K else None)
    state = log.model.engine.state
    assert state.refit[DONE] > done
    assert log.model_at(len(log.events)).digest() == log.model.digest()
    restored = Model.restored(1, "made", content, log.created)
    restored.apply(log.events[seq:], log.known_at)
    assert restored.digest() == log.model.digest()
    assert_follows_from_counts(state, log.model.engine.features)


def assert_follows_from_counts(state, features):
    """M and B are the sums over items that the model says."""
    z = np.hstack([np.ones((len(features), 1)), (features - state.columns[0]) * state.columns[1]])
    p = state.scale[P]
    q = np.clip(z @ state.level, p / 4, 1 - p / 4)
    weight = 1 / (q * (1 - q) + state.examined * state.scale[BETA2])
    sums = (z * (weight * state.examined)[:, None]).T @ z
    moment = z.T @ (weight * state.hits)
    # What is left is the prior: positive numbers on the diagonal, and nothing beside it.
    prior = np.diag(state.precision - sums)
    assert (prior[1:] > 0).all()
    assert prior[0] == pytest.approx(1 / (4 * p * p), rel=1e-6)
    precision = sums + np.diag(prior)
    for learned, wanted in (
        (state.precision, precision),
        (state.factor.T @ state.factor, precision),
        (state.moment, moment),
    ):
        np.testing.assert_allclose(learned, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    assert state.totals.tolist() == [state.examined.sum(), state.hits.sum()]
