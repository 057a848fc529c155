"""Servers that are broken on purpose are found out, by the same load and oracle that the right one passes."""

import struct
import time
from typing import NamedTuple

import pytest

from tests.faults.clients import LoadClients
from tests.faults.mutants import ALL
from tests.faults.oracle import ClientHistory
from tests.faults.test_history import FORGETFUL
from tests.support.stores import sql


class Trial(NamedTuple):
    """What happens to a server under load, be it broken or right."""

    deaths: tuple[tuple[str, int], ...] = ()
    faults: tuple[str, ...] = ()
    damage: bool = False  # to the newest snapshot of each model, between two lives
    twice: bool = True  # whether clients repeat and contradict themselves
    rollbacks: float = 0.0
    launched: bool = False  # models with lists and trials
    wait: float = 0.0  # seconds after which a slate that nobody reported had no click


BEFORE_COMMIT = Trial(deaths=(("after insert", 8), ("before begin", 6), ("after insert", 5)), twice=False)
FAILING = Trial(faults=("appending_fails",), twice=False)
SAVED = Trial(deaths=(("after snapshot", 2),))
# A snapshot of the default is taken in the middle of a refit in about one of three times.
SAVED_OFTEN = Trial(deaths=(("after snapshot", 2), ("after snapshot", 3)) * 3)
ROLLED_BACK = Trial(rollbacks=0.5)
LATE = Trial(wait=0.1)
LAUNCHED = Trial(
    deaths=(("after commit", 12), ("after apply", 15), ("after reply", 14), ("after commit", 17)),
    twice=False,
    launched=True,
)
# Half of the commits of that mutant have feedback whose copies come in the next one.
COMMITTED = LAUNCHED._replace(deaths=tuple(("after commit", number) for number in range(10, 18)))

# The mutant, what is done to it, and what the oracle must say of it.
CASES = [
    ("acknowledge_before_commit", BEFORE_COMMIT, "is not in the log"),
    ("apply_before_commit", FAILING, "server's own audit at"),
    ("accepted_although_it_failed", FAILING, "is not in the log"),
    ("no_unique_index", Trial(), "are in the log more than once"),
    ("two_halves_of_a_request", Trial(), "is one half of a request"),
    ("conflict_told_as_duplicate", Trial(), "is not what was acknowledged as such"),
    ("retry_with_a_new_nonce", Trial(faults=("answer_of_append_is_lost",)), "is feedback that nobody sent"),
    ("snapshot_off_by_one", SAVED, "the snapshot after event"),
    ("snapshot_without_the_refit", SAVED_OFTEN, "the snapshot after event"),
    ("snapshot_believed_unseen", SAVED._replace(damage=True), "server's own audit at"),
    ("rollback_leaves_new_items_on_show", ROLLED_BACK, "is not what the log comes to"),
    ("rollback_deletes_events", ROLLED_BACK, "is not in the log"),
    ("given_up_with_a_new_nonce", LATE, "were drawn again equal"),
    ("corrected_without_taking_back", LATE, "is not what the log comes to"),
    ("copies_in_a_second_commit", COMMITTED, "rival: it has no copy of event"),
    ("a_page_counts_twice", LAUNCHED, "is not what the log comes to"),
    ("units_are_hashed_by_each_process", LAUNCHED, "which is not its own"),
    ("corrected_as_often_as_asked", LATE, "is a correction that nobody sent"),
]
TRIALS = list(dict.fromkeys(trial for _, trial, _ in CASES))
# One that loses and one that counts twice. All others are found out by `make test-long`.
QUICK_MUTANTS = ("acknowledge_before_commit", "no_unique_index")
QUICK_TRIALS = {trial for mutant, trial, _ in CASES if mutant in QUICK_MUTANTS}


def long_unless(quick):
    return [] if quick else [pytest.mark.long]


def damage_newest_snapshots(path):
    """One bit of the first number of each: still a number, and nothing but the checksum can tell."""
    newest = sql(path, "SELECT model, max(seq), content FROM snapshot GROUP BY model")
    assert newest
    for model, seq, content in newest:
        bad = bytearray(content)
        (length,) = struct.unpack_from("<I", content, 8)
        bad[8 + 4 + length + 5] ^= 1
        sql(path, "UPDATE snapshot SET content = ? WHERE model = ? AND seq = ?", bytes(bad), model, seq)


def tried(server, trial, *mutant):
    """Try a server, made so by `mutant`; return the oracle's result."""
    history = ClientHistory()
    spec = {"broken": [*trial.faults, *mutant], "wait": trial.wait, "launched": trial.launched}
    server.stop(server.start_ready(**spec | {"broken": mutant}))
    how = {"late": 2 * trial.wait, "launched": trial.launched}
    with LoadClients([server.port], history, twice=trial.twice, rollbacks=trial.rollbacks, **how):
        for step, times in trial.deaths:
            server.kill_at(step, times, **spec)
        if trial.damage:
            damage_newest_snapshots(server.url)
        pid = server.start_ready(**spec)
        for _ in range(5):
            server.audit(history)
            time.sleep(0.15)
    server.audit(history)
    server.stop(pid)
    return server.check(history)


@pytest.mark.parametrize(
    ("mutant", "trial", "complaint"),
    [pytest.param(*case, id=case[0], marks=long_unless(case[0] in QUICK_MUTANTS)) for case in CASES],
)
def test_mutant_is_found(server, mutant, trial, complaint):
    result = tried(server, trial, mutant)
    assert any(complaint in sentence for sentence in result.complaints), str(result)


@pytest.mark.parametrize(
    "trial",
    [
        pytest.param(trial, id=str(n), marks=long_unless(trial in QUICK_TRIALS))
        for n, trial in enumerate(TRIALS)
    ],
)
def test_right_server_passes_the_same_trial(server, trial):
    result = tried(server, trial)
    assert not result.complaints, str(result)
    assert result.acked > 50


def test_every_mutant_and_fault_is_tried():
    elsewhere = {"fsync_fails_and_it_is_written", "fsync_fails_and_it_is_lost"}  # test_disk.py
    elsewhere |= {"read_only_while_a_file_says_so"}  # test_trouble_table.py
    here = {mutant for mutant, _, _ in CASES} | {fault for trial in TRIALS for fault in trial.faults}
    assert here | elsewhere | {*FORGETFUL} == set(ALL)
