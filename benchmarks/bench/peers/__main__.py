"""Time one peer, and print what it took as JSON: arguments are NAME ITEMS FEATURES K SECONDS BYTES."""

import json
import resource
import sys
from time import process_time
from typing import Any

import numpy as np

from benchmarks.bench.measure import measure
from benchmarks.bench.peers.process import PEERS, end_with_parent
from benchmarks.bench.world import SEED, build_world
from firstclick.streams import stream
from firstclick.worlds.long_tail import LongTailWorld

# Seconds that its steps are timed, or a tenth of its limit: starting may take longer.
MEASURED = 6.0


class PeerContender:
    """A peer whose steps are timed; it goes on where it is, because starting takes some of them minutes."""

    def __init__(self, peer: Any, world: LongTailWorld, k: int) -> None:
        self.peer, self.attractions, self.k = peer, world.attractions, k
        self.draw = stream(SEED, "bench", "peer")

    def begin(self) -> None:
        pass

    def play(self, first: int, last: int) -> None:
        for _ in range(first, last):
            slate = self.peer.recommend()
            hits = np.flatnonzero(self.draw.random(self.k) < self.attractions[slate])
            self.peer.learn(slate, int(hits[0]) if len(hits) else self.k)


def main() -> None:
    end_with_parent()
    name, *numbers = sys.argv[1:]
    n_items, n_features, k, memory = (int(numbers[place]) for place in (0, 1, 2, 4))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    world = build_world(n_items, n_features)
    peer = PEERS[name](world.features, k, SEED)
    contender = PeerContender(peer, world, k)
    share = min(MEASURED, float(numbers[3]) / 10)
    timing = measure({name: contender}, seconds=share, clock=process_time)[name]
    # Linux counts kilobytes, macOS bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    said = {"seconds": timing.seconds, "steps": timing.steps, "memory": peak}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
