"""Results, comparisons and data as tables of texts, and any of them for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from rich.text import Text

from firstclick.data.describe import SLATE, Description, ItemShare
from firstclick.experiments import Comparison
from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.style import display_name
from firstclick.report.winner import final_with_error, leaders, ranked
from firstclick.rounding import microseconds, percent, rounded, whole

LARGEST_GROUPS = 15
# What is left of 80 columns beside the numbers, for the name of an item or a group.
NAME_WIDTH = 56


@dataclass(frozen=True)
class TableBlock:
    """A table of texts, for a page or for the terminal. '812 ± 31' is a value and its error.

    The first columns, as many as `words`, are words, the others numbers. A column 'policy' holds labels of
    policies. Those in `bold` stand out; on a page they have the `badge`.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    bold: frozenset[str] = frozenset()
    badge: str = ""


def results_block(results: Results) -> TableBlock:
    """One row per policy, least expected regret first, those that lead in bold."""
    lead, order = leaders(results), ranked(results)
    compared = results.runs > 1 and len(order) > 1
    if all(result.against for result in order):
        return TableBlock(
            "After the last step. “Of baseline”: the expected clicks of what was shown, as a share of the "
            "baseline's; “worst”: the smallest such share at any time in any run, before the floor's coin "
            "fell. “Policy shown”: impressions of the policy's slate.",
            ("policy", "expected regret", "of best", "of baseline", "worst", "policy shown"),
            tuple(
                (
                    result.policy,
                    final_with_error(result),
                    percent(share_of_best(result)),
                    *_against(result, results.steps),
                )
                for result in order
            ),
            bold=frozenset(result.policy for result in lead),
            badge=_badge(len(lead)) if compared else "",
        )
    return TableBlock(
        "After the last step. “Of best”: the clicks won, as a share of those of the best fixed slate.",
        ("policy", "expected regret", "realised regret", "of best", "µs/step"),
        tuple(
            (
                result.policy,
                final_with_error(result),
                final_with_error(result, "regret"),
                percent(share_of_best(result)),
                microseconds(result.seconds_per_step),
            )
            for result in order
        ),
        bold=frozenset(result.policy for result in lead),
        badge=_badge(len(lead)) if compared else "",
    )


def _badge(leaders: int) -> str:
    return "lowest" if leaders == 1 else "tied for lowest"


def _against(result: PolicyResult, steps: int) -> tuple[str, ...]:
    """How the policy did beside the baseline: clicks, worst time, and share of pages."""
    against = result.against
    assert against is not None
    usual = float(against.baseline[:, -1].sum())
    ratio = float(against.shown[:, -1].sum()) / usual if usual > 0 else float("nan")
    worst, pages = against.worst_stated[:, -1].min(), against.policy_pages[:, -1].mean() / steps
    return percent(ratio), percent(float(worst)), percent(float(pages))


def results_table(results: Results, *, default: str = "") -> Table:
    """A rich table for the terminal: one row per policy, least expected regret first. It fits 80 columns.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> results_table(results).row_count
    1

    Policies that lead are bold.

    Args:
        results: From `simulate`.
        default: The name of the policy to mark as the default.
    """
    return terminal_table(results_block(results), default=default)


def share_of_best(result: PolicyResult) -> float:
    """The policy's clicks over those the best fixed slate got from the same users; NaN if it got none."""
    clicks = float(np.sum(result.reward[:, -1]))
    best = clicks + float(np.sum(result.regret[:, -1]))
    return clicks / best if best > 0 else float("nan")


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Expected regret after the last step on one data set, a row per setting and policy; fits 80 columns."""
    rows = tuple(
        (one.experiment.name, short_words(one), result.policy, final_with_error(result))
        for one in comparisons
        for result in one.results.results
    )
    return terminal_table(TableBlock("", ("experiment", "setting", "policy", "expected regret"), rows, 3))


def speed_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Each cell against the same algorithm in plain NumPy, timed in the same process right after it."""
    rows: dict[object, tuple[str, ...]] = {}
    for one in comparisons:
        for policy, speed in one.speeds.items():
            if speed.numpy_seconds is not None:
                times = microseconds(speed.seconds), microseconds(speed.numpy_seconds)
                faster = f"{speed.numpy_seconds / speed.seconds:.0f}"
                rows.setdefault(
                    (one.setting, policy), (one.dataset.title, setting_words(one), policy, *times, faster)
                )
    columns = ("data", "setting", "policy", "µs/step", "NumPy µs/step", "times faster")
    return terminal_table(TableBlock("", columns, tuple(rows.values()), 3)) if rows else None


def description_blocks(described: Description) -> Iterator[Table | str]:
    """What data looks like, as tables and lines in the order in which they are printed."""
    facts = {
        "users": whole(described.users),
        "items": whole(described.items),
        "interactions": whole(described.interactions),
        "attracted pairs": whole(described.attracted_pairs),
        "density": _share(described.density),
        "users whom nothing attracts": _share(described.idle_users),
        **{f"{name} read": whole(value) for name, value in described.facts.items()},
    }
    yield _names(("", ""), facts.items())
    yield ""
    yield _attractions("most attractive items", described.most_attractive)
    yield ""
    yield _attractions(f"best slate of {len(described.best_slate)}, greedy", described.best_slate)
    clicked = f"clicked by {_share(described.best_click_probability)} of users"
    if len(described.best_slate) == SLATE:
        clicked += f"; the {SLATE} most attractive: {_share(described.popular_click_probability)}"
    yield clicked
    yield ""
    yield "attraction of items"
    names = {0.0: "least", 0.5: "median", 1.0: "most"}
    columns = tuple(names.get(share, f"{share:.0%}") for share in described.quantiles)
    yield terminal_table(TableBlock("", columns, (tuple(map(_share, described.quantiles.values())),), 0))
    if described.groups:
        yield ""
        left = len(described.groups) - LARGEST_GROUPS
        heading = "group" + (f" (the largest; {left:,} more)" if left > 0 else "")
        groups = [(one.name, whole(one.items), _share(one.density)) for one in described.groups]
        yield _names((heading, "items", "density"), groups[:LARGEST_GROUPS])


def terminal_table(block: TableBlock, *, name_width: int | None = None, default: str = "") -> Table:
    """The table for the terminal. Long words go to a second line, or are cut after `name_width`.

    The policy `default` is marked as the default in the first column.
    """
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(block.columns)
    )
    for place, heading in enumerate(block.columns):
        if place >= block.words:
            table.add_column(heading, justify="right", no_wrap=True)
        elif name_width is None:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=name_width)
    for row in block.rows:
        # Text, not markup: a label may hold brackets.
        shown = (display_name(row[0], default), *row[1:])
        table.add_row(*map(Text, shown), style="bold" if row[0] in block.bold else None)
    return table


def setting_words(comparison: Comparison) -> str:
    """'256 items, d = 20, K = 4'."""
    setting = comparison.setting
    of = f" of {setting.group}" if setting.group else ""
    features = f", d = {setting.rank}" if setting.rank is not None else ""
    return f"{whole(setting.n_items)} items{of}{features}, K = {setting.k}"


def short_words(comparison: Comparison) -> str:
    """'L=256 d=20 K=4', and the group."""
    setting = comparison.setting
    features = f" d={setting.rank}" if setting.rank is not None else ""
    return f"L={setting.n_items}{features} K={setting.k}" + (f" {setting.group}" if setting.group else "")


def _names(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    return terminal_table(TableBlock("", columns, tuple(rows)), name_width=NAME_WIDTH)


def _attractions(heading: str, items: tuple[ItemShare, ...]) -> Table:
    return _names((heading, "attraction"), ((item.name, _share(item.attraction)) for item in items))


def _share(share: float) -> str:
    """'0.402%', with three digits: densities are small."""
    return rounded(100 * share)[0] + "%" if share else "0%"
