"""The default policy with slates of other sizes: how many items should a page show?"""

from collections.abc import Sequence
from dataclasses import replace

from firstclick.registry import DEFAULT_POLICY
from firstclick.report.tables import TableBlock
from firstclick.rounding import percent, with_error
from firstclick.studies.guide.data_worlds import DataWorld
from firstclick.studies.guide.families import FLOOR
from firstclick.studies.guide.page import by_cell
from firstclick.studies.guide.standings import Line

SLATES = (1, 2, 4, 8, 16)
# In --out: a comparison of its own, with a manifest and cells.
FOLDER = "sweep-k"


def swept(worlds: Sequence[DataWorld]) -> list[DataWorld]:
    """The worlds with slates of every size that leaves something to choose."""
    return [
        replace(world, name=f"{world.name} k={k}", k=k)
        for world in worlds
        for k in SLATES
        if world.n_items is not None and k < world.n_items
    ]


def sweep_block(lines: Sequence[Line], worlds: Sequence[DataWorld]) -> TableBlock:
    """What the default policy wins and loses in each of the swept worlds, beside random order."""
    cells, rows = by_cell(lines), []
    for world in worlds:
        ours, floor = cells[DEFAULT_POLICY, world.name], cells[FLOOR, world.name]
        rows.append(
            (
                world.name, percent(ours.clicks), percent(floor.clicks),
                with_error(ours.expected_regret, ours.stderr), percent(ours.share_of_random),
            )
        )  # fmt: skip
    columns = (DEFAULT_POLICY, "users who click", "at random", "regret", "of random's")
    return TableBlock("", columns, tuple(rows))
