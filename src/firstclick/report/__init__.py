"""Results as tables, figures and one HTML page.

The names below are loaded when they are first used: tables need no matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firstclick.extras import needed_by

if TYPE_CHECKING:
    from firstclick.report.comparisons import regret_figure
    from firstclick.report.figures import save_figure
    from firstclick.report.html import html_report, write_report
    from firstclick.report.tables import results_table
    from firstclick.report.winner import headline

__all__ = ["headline", "html_report", "regret_figure", "results_table", "save_figure", "write_report"]

_HOME = {
    "headline": "winner", "html_report": "html", "regret_figure": "comparisons", "results_table": "tables",
    "save_figure": "figures", "write_report": "html",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_by("the report"):
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
