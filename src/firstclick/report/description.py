"""What data looks like, as tables for the terminal."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from firstclick.data.describe import SLATE, Description, ItemShare
from firstclick.rounding import rounded, whole

LARGEST_GROUPS = 15
# What is left of 80 columns beside the numbers, for the name of an item or a group.
NAME_WIDTH = 56


def description_blocks(described: Description) -> Iterator[Table | str]:
    """The description as tables and lines, in the order in which they are printed."""
    sizes = _table("", "")
    for label, value in (
        ("users", whole(described.users)),
        ("items", whole(described.items)),
        ("interactions", whole(described.interactions)),
        ("attracted pairs", whole(described.attracted_pairs)),
        ("density", _share(described.density)),
        ("users whom nothing attracts", _share(described.idle_users)),
        *((f"{name} read", whole(value)) for name, value in described.facts.items()),
    ):
        sizes.add_row(label, value)
    yield sizes

    yield ""
    yield _shares("most attractive items", described.most_attractive)

    yield ""
    yield _shares(f"best slate of {len(described.best_slate)}, greedy", described.best_slate)
    clicked = f"clicked by {_share(described.best_click_probability)} of users"
    if len(described.best_slate) == SLATE:
        popular = _share(described.popular_click_probability)
        clicked += f"; the {SLATE} most attractive: {popular}"
    yield clicked

    yield ""
    yield "attraction of items"
    names = {0.0: "least", 0.5: "median", 1.0: "most"}
    quantiles = _table(*(names.get(share, f"{share:.0%}") for share in described.quantiles), right=True)
    quantiles.add_row(*map(_share, described.quantiles.values()))
    yield quantiles

    if described.groups:
        yield ""
        left = len(described.groups) - LARGEST_GROUPS
        groups = _table("group" + (f" (the largest; {left:,} more)" if left > 0 else ""), "items", "density")
        for entry in described.groups[:LARGEST_GROUPS]:
            groups.add_row(Text(entry.name), whole(entry.items), _share(entry.density))
        yield groups


def _shares(heading: str, items: tuple[ItemShare, ...]) -> Table:
    table = _table(heading, "attraction")
    for item in items:
        table.add_row(Text(item.name), _share(item.attraction))
    return table


def _table(first: str, *others: str, right: bool = False) -> Table:
    shown = bool(first)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=shown)
    table.add_column(
        first, justify="right" if right else "left", no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH
    )
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _share(share: float) -> str:
    """'0.402%', with three digits: densities are small."""
    return rounded(100 * share)[0] + "%" if share else "0%"
