"""Contenders take turns from their first step, and the best round of each counts."""

import pytest

from benchmarks.bench.measure import MOST_STEPS, ROUNDS, measure


class Stopwatch:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Fake:
    """A contender whose step takes so long, in round after round; it remembers what it was asked."""

    def __init__(self, watch, *seconds, log=None, name=""):
        self.watch, self.seconds, self.log, self.name = watch, list(seconds), log, name
        self.rounds, self.played, self.next = [], [], 0

    def begin(self):
        # The first beginning is for the compiler.
        self.rounds.append([])
        self.next = 0
        self.watch.now += 1000.0  # never part of a step
        if self.log is not None:
            self.log.append(self.name)

    def play(self, first, last):
        assert first == self.next, "steps follow one another"
        self.next = last
        self.rounds[-1].append((first, last))
        timed = len(self.rounds) - 2
        seconds = 50.0 if timed < 0 else self.seconds[min(timed, len(self.seconds) - 1)]
        self.watch.now += seconds * (last - first)


def test_the_best_round_counts_and_compiling_does_not():
    watch = Stopwatch()
    contender = Fake(watch, 0.004, 0.009, 0.002, 0.009)
    timing = measure({"one": contender}, seconds=5.0, clock=watch)["one"]
    assert timing.seconds == pytest.approx(0.002)
    assert len(contender.rounds) == 1 + ROUNDS


def test_every_round_plays_the_first_steps_that_fit_into_its_share():
    watch = Stopwatch()
    contender = Fake(watch, 0.01)
    timing = measure({"one": contender}, seconds=2.0, rounds=4, clock=watch)["one"]
    assert timing.steps == pytest.approx(50, abs=1)  # half a second a round
    assert [last for *_, (_, last) in contender.rounds[1:]] == [timing.steps] * 4
    assert [one for one, *_ in contender.rounds[2:]] == [(0, timing.steps)] * 3


def test_a_fast_contender_stops_at_the_most_steps_and_a_slow_one_plays_one():
    watch = Stopwatch()
    timings = measure({"fast": Fake(watch, 1e-6), "slow": Fake(watch, 70.0)}, seconds=1.0, clock=watch)
    assert timings["fast"].steps == MOST_STEPS
    assert timings["slow"].steps == 1
    assert timings["slow"].seconds == pytest.approx(70.0)


def test_contenders_take_turns():
    watch, log = Stopwatch(), []
    both = {name: Fake(watch, 0.01, log=log, name=name) for name in "ab"}
    measure(both, seconds=1.0, rounds=3, clock=watch)
    assert "".join(log) == "aabb" + "ab" + "ab"


def test_whoever_watches_can_stop_it():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure({"one": Fake(Stopwatch(), 0.01)}, seconds=1.0, report=stop)
