"""Peers are played in processes of their own, within their limits, and what they cannot do is said."""

import os
import select
import signal
import subprocess
import sys
import time
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.bench import peer_runs
from benchmarks.bench.peers import process
from benchmarks.bench.peers.__main__ import PeerContender
from benchmarks.bench.peers.peer import examined, installed
from benchmarks.bench.peers.process import NOT_INSTALLED, PEERS, play_peer, within_limits
from benchmarks.bench.results import Kept
from benchmarks.bench.world import build_world

posix = pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
LIMITS = {"seconds": 20.0, "memory": 4 * 10**9}


def python(code):
    return [sys.executable, "-c", code]


@posix
def test_a_process_that_keeps_within_its_limits_is_heard():
    said = within_limits(python("print('a note'); print('{\"seconds\": 0.5, \"steps\": 3}')"), **LIMITS)
    assert said == {"seconds": 0.5, "steps": 3}


@posix
def test_a_process_that_runs_over_its_time_is_ended_and_said_so():
    began = time.monotonic()
    said = within_limits(python("import time; time.sleep(60)"), seconds=0.5, memory=10**9)
    assert said == {"failure": "ran out of its 0.5 s"}
    assert time.monotonic() - began < 20


@posix
@pytest.mark.parametrize(
    "code",
    [
        "raise MemoryError",
        "import sys; print('std::bad_alloc', file=sys.stderr); sys.exit(3)",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_a_process_that_runs_over_its_memory_is_said_so(code):
    assert within_limits(python(code), **LIMITS) == {"failure": "ran out of its 4 GB"}


@posix
def test_a_process_limits_its_own_memory():
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 * 10**8, 4 * 10**8)); bytearray(10**9)"
    assert within_limits(python(code), **LIMITS)["failure"] == "ran out of its 4 GB"


@posix
def test_any_other_failure_is_said_in_the_words_of_the_peer():
    code = "import sys; print('first\\nit needs two items', file=sys.stderr); sys.exit(1)"
    assert within_limits(python(code), **LIMITS) == {"failure": "failed: it needs two items"}
    assert within_limits(python("print('no JSON')"), **LIMITS) == {"failure": "failed: exit code 0"}


@posix
def test_whoever_stops_leaves_no_process_behind(tmp_path):
    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    alive = tmp_path / "alive"
    code = f"import time\nfor _ in range(100): open({str(alive)!r}, 'a').write('.'); time.sleep(0.05)"
    with pytest.raises(KeyboardInterrupt):
        within_limits(python(code), **LIMITS, report=stop)
    before = alive.read_text() if alive.exists() else ""
    time.sleep(0.3)
    assert (alive.read_text() if alive.exists() else "") == before


@posix
def test_a_peer_gets_one_thread():
    code = "import os, json; print(json.dumps({'threads': os.environ['OPENBLAS_NUM_THREADS']}))"
    assert within_limits(python(code), **LIMITS) == {"threads": "1"}


class Nobody:
    title: ClassVar[str] = "Nobody"
    package: ClassVar[str] = "no_such_package_anywhere"
    used: ClassVar[str] = ""
    remark: ClassVar[str] = ""


def test_a_peer_that_is_not_installed_is_not_played(monkeypatch):
    monkeypatch.setitem(PEERS, "nobody", Nobody)
    assert play_peer("nobody", 16, 4, 2, **LIMITS) == {"failure": NOT_INSTALLED}


@pytest.fixture
def one_peer(monkeypatch):
    """One installed peer, whose answers by the number of items are made up, and what it was asked."""
    asked, answers = [], {}

    def play(name, n_items, *_, **__):
        asked.append(n_items)
        return answers[n_items]

    monkeypatch.setattr(process, "PEERS", {"numpy": Nobody})
    monkeypatch.setattr(peer_runs, "PEERS", {"numpy": Nobody})
    monkeypatch.setattr(peer_runs, "installed", lambda peer: "1.0")
    monkeypatch.setattr(peer_runs, "play_peer", play)
    return asked, answers


def measured(kept, items=(3000, 16, 256), **limits):
    return peer_runs.measure_peers(items, 20, 4, kept, **(LIMITS | limits), report=lambda done, total: None)


def test_what_ran_out_is_not_tried_with_more_items(one_peer):
    asked, answers = one_peer
    answers |= {16: {"seconds": 0.1, "steps": 9, "memory": 5}, 256: {"failure": "ran out of its 20 s"}}
    small, middle, large = measured(Kept(None))
    assert asked == [16, 256]
    assert (small.seconds, small.steps, small.memory, small.failure) == (0.1, 9, 5, "")
    assert (middle.seconds, middle.failure) == (None, "ran out of its 20 s")
    assert large.failure == "not tried: ran out of its 20 s with 256 items"


def test_peers_are_kept_and_played_again_only_under_other_limits(one_peer, tmp_path):
    asked, answers = one_peer
    answers |= {size: {"seconds": 0.1, "steps": 9, "memory": 5} for size in (16, 256, 3000)}
    kept = Kept(tmp_path / "cells.jsonl")
    first = measured(kept, items=(16, 256))
    assert measured(kept)[:2] == first
    assert asked == [16, 256, 3000]
    measured(kept, seconds=30.0)
    assert asked == [16, 256, 3000] * 2


STARTER = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
CHILD = """
import os, time
from benchmarks.bench.peers.process import end_with_parent
end_with_parent()
print(os.getpid(), flush=True)
time.sleep(60)
"""


@posix
def test_a_peer_ends_when_its_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", STARTER, CHILD], stdout=subprocess.PIPE) as starter:
        peer = int(starter.stdout.readline())
        starter.kill()
        # The pipe has no end as long as either of them holds it.
        ended, _, _ = select.select([starter.stdout], [], [], 20)
        if not ended:
            os.kill(peer, signal.SIGKILL)
    assert ended


def test_the_user_looks_down_to_the_click():
    assert examined([7, 8, 9], 1) == ([7, 8], [0, 1])
    assert examined([7, 8, 9], 3) == ([7, 8, 9], [0, 0, 0])


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_shows_k_items_and_can_be_told_any_answer(name):
    if installed(PEERS[name]) is None:
        pytest.skip(f"{name} is not installed; make peers")
    world = build_world(12, 3)
    peer = PEERS[name](world.features, 4, 1)
    for click in (0, 2, 4):
        slate = peer.recommend()
        assert len(slate) == len(set(slate)) == 4
        assert set(slate) <= set(range(12))
        peer.learn(slate, click)


def test_a_peer_meets_the_clicks_of_the_world():
    class Watched:
        """Shows the best item and three others, and remembers what was clicked."""

        def __init__(self):
            self.clicks = []

        def recommend(self):
            return [best, *others]

        def learn(self, slate, click):
            self.clicks.append(click)

    world = build_world(50, 3)
    best, *others = np.argsort(-world.attractions)[:4]
    peer = Watched()
    contender = PeerContender(peer, world, 4)
    contender.begin()
    contender.play(0, 1000)
    # The best item attracts every second user: 500 of 1,000, and five standard deviations are 79.
    assert abs(peer.clicks.count(0) - 500) < 79
    assert max(peer.clicks) == 4
