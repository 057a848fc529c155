"""Benchmarks start, and measure what they name."""

import itertools
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bench import __main__ as bench
from benchmarks.bench.contenders import Floor, LoopPlayer
from benchmarks.bench.tuned_numpy import TUNED
from benchmarks.bench.world import build_world
from benchmarks.loadtest import server_process
from benchmarks.loadtest.generator import OpenLoop, Schedule
from firstclick import make_policy
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.cli import run_command_line
from firstclick.serve import open_service
from tests.support.reference import policies as reference
from tests.support.reference.rounds import FEATURES, ITEMS, D, K, rounds

FOLDER = Path(__file__).parents[2] / "benchmarks"
# These have no command; clax_click_models runs in a Python of its own, which has clax.
WITHOUT_HELP = {"__init__", "first_attractive", "scanning", "clax_click_models"}
SCRIPTS = sorted({path.stem for path in FOLDER.glob("*.py")} - WITHOUT_HELP) + [
    f"{path.parent.name}.__main__" for path in sorted(FOLDER.glob("*/__main__.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_prints_its_help(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"benchmarks.{script}", "--help"])
    monkeypatch.delitem(sys.modules, f"benchmarks.{script}", raising=False)
    with pytest.raises(SystemExit, match=r"^(0|None|)$"):
        runpy.run_module(f"benchmarks.{script}", run_name="__main__")
    assert "usage:" in capsys.readouterr().out.lower()


@pytest.mark.long  # compiles a policy in four ways
def test_bench_measures_a_tiny_catalog(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SHORT_SECONDS", 0.01)
    words = ["bench", "--items", "16", "--features", "10", "--policy", "cascade-lin-ts", "--k", "2", "--json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        run_command_line(bench.app)
    assert not end.value.code
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    took = {name: timing["seconds"] for name, timing in cell["timings"].items()}
    assert cell["ratios"]["times_floor"] == pytest.approx(took["policy"] / took["floor"])
    assert cell["ratios"]["times_faster_than_scan"] == pytest.approx(took["scan"] / took["policy"])


def player(name, steps, *, scan=False, n_items=1200):
    """A policy in the loop of the simulator, on enough items for an index, and what it recorded."""
    world = build_world(n_items, 6)
    found = LoopPlayer(make_policy(name), world, catalog_arrays(world.features, n_items), 3, scan=scan)
    return found, *found.record(steps)


@pytest.mark.long
def test_scan_policy_and_floor_play_the_recorded_steps():
    loop, slates, clicks = player("cascade-lin-ts", 60)
    recorded = loop.state
    _, scanned, scanned_clicks = player("cascade-lin-ts", 60, scan=True)
    np.testing.assert_array_equal(scanned, slates)
    np.testing.assert_array_equal(scanned_clicks, clicks)
    loop.begin()
    loop.play(0, 10)
    loop.play(10, 60)
    floor = Floor(loop)
    floor.begin()
    floor.play(0, 60)
    for played, repeated, expected in zip(loop.state, floor.state, recorded, strict=True):
        np.testing.assert_array_equal(played, expected)
        np.testing.assert_array_equal(repeated, expected)


STEP = reference.Step(np.uint64(0), FEATURES, np.zeros(K * D))


def tuned_and_slow(name, slow):
    """A tuned policy and a reference that learned from the same clicks, at every step."""
    policy = make_policy(name)
    tuned = TUNED[policy.name](FEATURES.copy(), K, policy)
    for slate, click in rounds():
        tuned.learn(slate, click)
        clicks = np.arange(K) == click
        slow.learn(STEP, slate.tolist(), clicks, min(click + 1, K))
        yield tuned


NO_NOISE = type("Draw", (), {"standard_normal": staticmethod(np.zeros)})()


def test_tuned_linear_policies_learn_and_rank_as_the_reference():
    slow = reference.LinTS(FEATURES, K, 0.7)
    for tuned in tuned_and_slow("cascade-lin-ts:sigma=0.7", slow):
        mean = np.linalg.solve(slow.M, slow.B) / 0.7**2
        np.testing.assert_allclose(tuned.posterior.sample(NO_NOISE), mean, atol=1e-10)
    draw = np.random.default_rng(1)
    thetas = np.array([tuned.posterior.sample(draw) for _ in range(20_000)])
    # 20,000 draws: a variance is known to 1%, so 6% is out of reach of chance.
    np.testing.assert_allclose(np.cov(thetas.T), np.linalg.inv(slow.M), atol=0.06 / np.diag(slow.M).min())
    slow, compared = reference.RankedLinTS(FEATURES, K, 0.7), 0
    for tuned in tuned_and_slow("ranked-lin-ts:sigma=0.7", slow):
        if all(ranker.B.any() for ranker in slow.rankers):
            assert tuned.recommend(NO_NOISE) == slow.recommend(STEP, range(ITEMS), K)
            compared += 1
    assert compared > 200
    slow = reference.LinUCB(FEATURES, K, 0.7, 1.3)
    for tuned in tuned_and_slow("cascade-lin-ucb:sigma=0.7,c=1.3", slow):
        bounds = FEATURES @ np.linalg.solve(slow.M, slow.B) / 0.7**2
        bounds += 1.3 * np.sqrt([x @ np.linalg.solve(slow.M, x) for x in FEATURES])
        assert list(tuned.recommend(None)) == np.argsort(-bounds)[:K].tolist()


@pytest.mark.parametrize("name", ["cascade-ucb1", "cascade-kl-ucb"])
def test_tuned_counting_policies_rank_as_the_reference(name):
    """The references count from t = 0 and pretend one observation; the tuned ones have made it."""
    slow = reference.SLOW[name](FEATURES, K, start="pessimistic")
    for tuned in itertools.islice(tuned_and_slow(name, slow), 20, None):  # many ties before
        slow.t = lambda now=tuned.time - (name != "cascade-ucb1"): now
        examined, hits = slow.counts()
        scores = np.array([slow.index(hits[e], examined[e] + 1, STEP) for e in range(ITEMS)])
        slate = tuned.recommend(None)
        # Of equal counts any may come first.
        np.testing.assert_allclose(scores[slate], np.sort(scores)[::-1][:K], atol=1e-9)
        assert len(set(slate)) == K


class Connection:
    """A connection that writes down what is sent."""

    def __init__(self):
        self.since, self.sent = 0.0, []

    def send(self, request, since):
        self.since = since
        self.sent.append(request)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_open_loop_counts_from_when_a_request_was_due():
    clock = Clock()
    loop = OpenLoop((b"%d" % i for i in itertools.count()), lambda code, _: int(code < 300), 10.0, clock)
    first, second = Connection(), Connection()
    loop.begin([first, second], Schedule(0.0, 10.0, 5))
    loop.tick()
    assert (first.sent, second.sent) == ([b"0"], [])
    clock.now = 0.02
    loop.answered(first, 200, b"")
    # The server stalls for a second: requests 1 to 4 are due meanwhile, two of them can be sent.
    for clock.now in (0.1, 0.25, 0.5, 0.9):
        loop.tick()
    assert [first.sent, second.sent] == [[b"0", b"2"], [b"1"]]
    clock.now = 1.0
    loop.answered(first, 200, b"")
    loop.answered(second, 503, b"")
    assert not loop.finished
    clock.now = 1.01
    loop.answered(first, 200, b"")
    loop.answered(second, 200, b"")
    assert loop.finished
    # Request 0 took 0.02 s; 1 and 2 were due at 0.1 and 0.2 and answered at 1; 3 and 4 sent late at that.
    assert sorted(loop.latencies) == pytest.approx([0.02, 0.61, 0.71, 0.8, 0.9])
    assert (loop.done, dict(loop.codes)) == (4, {200: 4, 503: 1})


def test_log_made_for_recovery_is_one_the_service_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(server_process, "N_SLATES", 20)
    monkeypatch.setattr(server_process, "TOGETHER", 40)
    shop = server_process.Shop(str(tmp_path / "shop.db"), n_items=120)
    shop.lengthen(100)
    tokens = shop.tokens(3)
    recovered = server_process.recovered(shop.path, tail=30)
    assert recovered.events == 101
    assert recovered.seconds > 0
    with open_service(shop.path) as service:
        model = service.model("shop")
        assert (model.seq, model.click_stats.slates) == (101, 100)
        assert [seq for seq, _ in service.store.snapshots(model.id)] == [71]
        assert {service.feedback("shop", *one).status for one in tokens} == {"accepted"}
