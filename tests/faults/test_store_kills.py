"""kill -9 at every step of a store: what was acknowledged is there, and nothing by halves."""

import itertools

import pytest

from firstclick.serve.store import open_store
from tests.faults.killed_store import BATCH, BATCHES, Kill, kills
from tests.support.stores import KINDS, feedback, log_of

WRITING = ["before begin", "after begin", "after insert", "after commit"]
SAVING = ["after snapshot insert", "after snapshot"]


@pytest.fixture(
    params=[pytest.param(kind, marks=[pytest.mark.long] if kind == "postgresql" else []) for kind in KINDS]
)
def urls(request, tmp_path):
    """Addresses of empty stores, as many as are wanted."""
    if request.param == "sqlite":
        return (str(tmp_path / f"shop-{n}.db") for n in itertools.count())
    server = request.getfixturevalue("postgresql")
    return (server.new_database() for _ in itertools.count())


def test_killed_at_any_step_of_an_append(urls, tmp_path):
    asked = [
        Kill(next(urls), step, times, str(tmp_path / f"acks-{step}-{times}"))
        for step in [*WRITING, *SAVING]
        for times in (2, BATCHES)
    ]
    for kill, acks in zip(asked, kills(asked), strict=True):
        store = open_store(kill.url)
        (model,) = store.models()
        acked = [n for n in acks if n.isdigit()]
        committed = len(acked) + (kill.step == "after commit")
        found = [int.from_bytes(event.nonce, "big") for event in log_of(store, model.id)]
        assert found == list(range(1 + committed * BATCH)), kill
        saved = sum(n.startswith("s") for n in acks) + (kill.step == "after snapshot")
        newest = [1 + (n + 1) * BATCH for n in range(saved)][-3:]
        assert [seq for seq, _ in store.snapshots(model.id)] == newest[::-1], kill
        everything = [(model.id, feedback(n)) for n in range(1 + BATCHES * BATCH)]
        answers = store.append(everything)
        assert [answer.seq for answer in answers] == list(range(1, 2 + BATCHES * BATCH))
        assert sum(answer.new for answer in answers) == len(everything) - len(found)
        assert store.check() == []
        store.close()


def test_killed_at_any_step_of_a_creation(urls, tmp_path):
    asked = [Kill(next(urls), step, 1, str(tmp_path / f"acks-{step}")) for step in WRITING]
    for kill, acks in zip(asked, kills(asked), strict=True):
        assert acks == []
        store = open_store(kill.url)
        there = [model.head for model in store.models()]
        assert there == ([1] if kill.step == "after commit" else []), kill
        assert store.create("shop", [feedback(0)]).head == 1
        assert store.check() == []
        store.close()


def test_killed_after_a_checkpoint_or_between_creation_and_use(urls, tmp_path):
    url = next(urls)
    asked = [Kill(url, "after creation of tables", 1, str(tmp_path / "acks-created"))]
    if not url.startswith("postgresql"):
        asked += [Kill(next(urls), "after checkpoint", n, str(tmp_path / f"acks-{n}")) for n in (1, 2)]
    for kill, acks in zip(asked, kills(asked), strict=True):
        store = open_store(kill.url)
        acked = sum(n.isdigit() for n in acks)
        assert [model.head for model in store.models()] == ([1 + acked * BATCH] if acks else [])
        assert store.check() == []
        store.close()


def test_an_acknowledgement_before_the_commit_would_be_noticed(urls, tmp_path):
    asked = [Kill(next(urls), "after insert", 5, str(tmp_path / "acks"), early=True)]
    (acks,) = kills(asked)
    store = open_store(asked[0].url)
    (model,) = store.models()
    acked = sum(n.isdigit() for n in acks)
    assert 1 + acked * BATCH == model.head + BATCH
    store.close()
