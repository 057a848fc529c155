"""The default policy with slates of other sizes: how many items should a page show?"""

from collections.abc import Sequence
from dataclasses import replace

from firstclick.registry import DEFAULT_POLICY
from firstclick.report.tables import TableBlock
from firstclick.rounding import percent, with_error
from firstclick.studies.guide.data_worlds import DataWorld
from firstclick.studies.guide.families import FLOOR
from firstclick.studies.guide.standings import Line, by_cell, worlds_in

SLATES = (1, 2, 4, 8, 16)
# In --out: a comparison of its own, with a manifest and cells.
FOLDER = "sweep-k"
# Between the name of a world and the size of its slates.
SIGN = " k="


def swept(worlds: Sequence[DataWorld]) -> list[DataWorld]:
    """The worlds with slates of every size that leaves something to choose."""
    return [
        replace(world, name=f"{world.name}{SIGN}{k}", k=k)
        for world in worlds
        for k in SLATES
        if world.n_items is not None and k < world.n_items
    ]


def sweep_block(lines: Sequence[Line]) -> TableBlock:
    """What the default policy wins and loses in each of the swept worlds, beside random order."""
    cells, rows = by_cell(lines), []
    for name in worlds_in(lines):
        ours, floor = cells[DEFAULT_POLICY, name], cells[FLOOR, name]
        world, _, k = name.rpartition(SIGN)
        rows.append(
            (
                world, k, percent(ours.clicks_per_step), percent(floor.clicks_per_step),
                with_error(ours.expected_regret, ours.stderr), percent(ours.share_of_random),
            )
        )  # fmt: skip
    columns = ("world", "k", "clicks per step", "of random order", "regret", "share of random's")
    return TableBlock("", columns, tuple(rows))
