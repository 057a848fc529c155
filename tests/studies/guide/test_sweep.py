"""The default policy with slates of 1, 2, 4, 8 and 16 items."""

from types import SimpleNamespace

import numpy as np

from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.data_worlds import DataWorld
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.page import guide_page, sweep_section
from firstclick.studies.guide.standings import lines_of
from firstclick.studies.guide.sweep import sweep_block, swept


def test_sizes_that_leave_nothing_to_choose_are_left_out():
    few = DataWorld("few", "", 4, "Few.", n_items=8)
    many = DataWorld("many k=2", "", 4, "Many.", n_items=17)
    assert [(one.name, one.k) for one in swept([few, many])] == [
        ("few k=1", 1), ("few k=2", 2), ("few k=4", 4),
        *((f"many k=2 k={k}", k) for k in (1, 2, 4, 8, 16)),
    ]  # fmt: skip


def test_the_table_has_a_row_for_each_size_and_stands_on_the_page():
    played = []
    for world in swept([DataWorld("few k=3", "", 4, "Few.", n_items=3)]):
        for name, lost in ((DEFAULT_POLICY, 10.0), ("random", 40.0)):
            regret, won = np.array([lost, lost]), np.full(2, 50 - lost / world.k)
            policy = SimpleNamespace(label=name)
            played.append(Contender(world, name, policy, "", 3, 2, "", regret, won))
    lines = lines_of(played, 50)
    block = sweep_block(lines)
    assert block.rows == (
        ("few k=3", "1", "80.0%", "20.0%", "10.0 ± 0", "25.0%"),
        ("few k=3", "2", "90.0%", "60.0%", "10.0 ± 0", "25.0%"),
    )
    section = sweep_section(lines)
    assert "| few k=3 | 2 | 90.0% | 60.0% | 10.0 ± 0 | 25.0% |" in section
    assert sweep_section([]) == []
    assert "## How many items to show" not in guide_page(_stock_lines())
    assert "## How many items to show" in guide_page(_stock_lines(), lines)


def _stock_lines():
    from firstclick.studies.guide.stock import stock_worlds

    (world,) = stock_worlds(["few-items"])
    policy = SimpleNamespace(label="random")
    return lines_of([Contender(world, "random", policy, "", 16, None, "", np.array([9.0]))], 50)
