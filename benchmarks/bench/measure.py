"""Fair times of unequal contenders: they take turns, and the best round of each counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import thread_time

from benchmarks.bench.contenders import Contender

MOST_STEPS = 20_000
ROUNDS = 5


@dataclass(frozen=True)
class Timing:
    """The mean time of a step over the first `steps`, in the best of some rounds."""

    seconds: float
    steps: int


def measure(
    contenders: Mapping[str, Contender],
    *,
    seconds: float,
    rounds: int = ROUNDS,
    report: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = thread_time,
) -> dict[str, Timing]:
    """Time every contender from its first step on, for about as many seconds as given.

    The first round finds out how many steps fit, 20,000 at most and one at least; the others play as
    many, so that a noisy neighbour slows all of a round or none. Time is the processor's, spent on this
    thread: what others do on the machine counts little. `report` is called between contenders, and may raise
    to stop.
    """
    steps: dict[str, int] = {}
    best: dict[str, float] = {}
    for name, contender in contenders.items():
        report()
        contender.begin()
        contender.play(0, 1)  # compiles
        contender.begin()
        steps[name], best[name] = _as_many_as_fit(contender, seconds / rounds, clock)
    for _ in range(rounds - 1):
        for name, contender in contenders.items():
            report()
            contender.begin()
            start = clock()
            contender.play(0, steps[name])
            best[name] = min(best[name], clock() - start)
    return {name: Timing(best[name] / steps[name], steps[name]) for name in contenders}


def _as_many_as_fit(contender: Contender, seconds: float, clock: Callable[[], float]) -> tuple[int, float]:
    """How many first steps take about these seconds, and how long they took."""
    done, spent, more = 0, 0.0, 1
    while True:
        start = clock()
        contender.play(done, done + more)
        spent += clock() - start
        done += more
        room = MOST_STEPS - done
        # As many again at most, because a later step may take longer than an early one.
        affordable = int((seconds - spent) / max(spent / done, 1e-9))
        more = min(done, room, affordable)
        if more < 1:
            return done, spent
