"""Measure the cells that are not measured yet, one after the other, on one core."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from benchmarks.bench.cells import Cell
from benchmarks.bench.contenders import Contender, Floor, LoopPlayer, NumPyPlayer, Pass
from benchmarks.bench.machine import machine, versions
from benchmarks.bench.measure import measure
from benchmarks.bench.results import FLOOR, PASS, PLAIN, POLICY, SCAN, TUNED, Kept, Measured
from benchmarks.bench.tuned_numpy import TUNED as TUNED_PLAYERS
from benchmarks.bench.world import build_world
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.errors import WorkFailed
from firstclick.registry import policy_classes
from firstclick.source_code import code_hash
from firstclick.studies.paper.plain_numpy import TRANSCRIBED
from firstclick.worlds.long_tail import LongTailWorld

Report = Callable[[int, int], Any]


def measure_cells(cells: Sequence[Cell], kept: Kept, *, seconds: float, report: Report) -> list[Measured]:
    """Every cell measured, each contender for about as many seconds as given; those in `kept` are not again.

    `report(done, all)` is called between contenders, and may raise to stop.
    """
    from threadpoolctl import threadpool_limits

    found = already_measured(cells, kept, seconds=seconds)
    missing = [cell for cell in cells if cell.key not in found]
    world: LongTailWorld | None = None
    with threadpool_limits(limits=1, user_api="blas"):
        for number, cell in enumerate(missing):
            done = len(cells) - len(missing) + number
            report(done, len(cells))
            if world is None or world.features.shape != (cell.n_items, cell.n_features):
                world = None  # Given back before the next one is made.
                world = build_world(cell.n_items, cell.n_features)
            found[cell.key] = _measured(cell, world, seconds, partial(report, done, len(cells)))
            kept.add("cell", _context(seconds), found[cell.key])
    report(len(cells), len(cells))
    return [found[cell.key] for cell in cells]


def already_measured(
    cells: Sequence[Cell], kept: Kept, *, seconds: float
) -> dict[tuple[str, int, int, int], Measured]:
    """Those of the cells that were measured before, here, by this code and for as long."""
    keys = {cell.key for cell in cells}
    found = map(Measured.from_plain, kept.load("cell", _context(seconds)))
    return {one.key: one for one in found if one.key in keys}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _code() -> str:
    """What the time of a step depends on."""
    return code_hash(__name__, *policy_classes().values())


def _context(seconds: float) -> str:
    return json.dumps([machine(), versions(), _code(), seconds])


def _measured(cell: Cell, world: LongTailWorld, seconds: float, report: Callable[[], Any]) -> Measured:
    policy, k = cell.policy, cell.k
    catalog = catalog_arrays(world.features, world.n_items)
    player, scan = (LoopPlayer(policy, world, catalog, k, scan=scan) for scan in (False, True))
    floor = Floor(player)
    contenders: dict[str, Contender] = {POLICY: player, FLOOR: floor, SCAN: scan, PASS: Pass(world)}
    for name, transcriptions in ((PLAIN, TRANSCRIBED), (TUNED, TUNED_PLAYERS)):
        if policy.name in transcriptions:
            contenders[name] = NumPyPlayer(transcriptions[policy.name], policy, world, k)
    timings = measure(contenders, seconds=seconds, report=report)
    assert floor.slates is not None
    scanned, _ = scan.record(min(timings[SCAN].steps, len(floor.slates)))
    if len(differing := np.flatnonzero((floor.slates[: len(scanned)] != scanned).any(axis=1))):
        step = int(differing[0])
        raise WorkFailed(
            f"{policy.label}: slate {step} of {cell.n_items} items is {floor.slates[step].tolist()} with "
            f"shortcuts and {scanned[step].tolist()} by a scan; they must be the same: please report this"
        )
    return Measured(policy.label, *cell.key[1:], timings, len(scanned), now())
