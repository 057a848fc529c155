"""Slates, states and simulations have the recorded bits: a change that should not change them did not."""

import json

import pytest

from tests.support import recorder
from tests.support.policies import COMPILED, PLAIN


@pytest.fixture(scope="module", autouse=True)
def _kernels():
    if PLAIN:
        pytest.skip("records are those of compiled kernels")


def policies(names):
    """Policies as parameters, compiled always: all but four in the long run."""
    return pytest.mark.parametrize(
        "policy",
        [
            pytest.param(name, marks=[] if name.partition(":")[0] in COMPILED else [pytest.mark.long])
            for name in names
        ],
    )


def differences(part, *only):
    """Differences from the records of a part, or of some policies of it."""
    page = recorder.read(part)
    if not recorder.comparable(part, page):
        pytest.skip(f"bits were recorded with {page['made']}: record again, see tests/support/recorder.py")
    now = json.loads(json.dumps(recorder.PARTS[part](only or None)))
    records = {name: record for name, record in page["records"].items() if name in now or not only}
    return recorder.differences(records, now)


@policies(recorder.specs())
def test_slates_and_states_are_the_recorded_ones(policy):
    assert differences("policies", policy) == []


@policies(recorder.SESSIONS)
def test_ranker_calls_return_what_is_recorded(policy):
    assert differences("calls", policy) == []


@pytest.mark.long
def test_simulations_have_the_recorded_sums():
    assert differences("simulations") == []


@pytest.mark.long
def test_the_reproduction_on_movielens_has_the_recorded_verdicts(movielens_1m, monkeypatch):
    monkeypatch.setenv("FIRSTCLICK_DATA", str(movielens_1m.parent))
    assert differences("movielens") == []


def test_every_policy_is_recorded():
    recorded = {name.rpartition(" in ")[0] for name in recorder.read("policies")["records"]}
    assert recorded == set(recorder.specs())
