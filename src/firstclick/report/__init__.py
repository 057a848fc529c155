"""Results as tables, figures and one HTML page.

The names below are loaded when they are first used: tables need no matplotlib.
"""

from typing import TYPE_CHECKING

from firstclick.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstclick.report.comparisons import regret_figure
    from firstclick.report.figures import save_figure
    from firstclick.report.html import html_report, write_report
    from firstclick.report.tables import results_table
    from firstclick.report.winner import headline

__all__ = ["headline", "html_report", "regret_figure", "results_table", "save_figure", "write_report"]

_HOME = {
    "headline": "report.winner", "html_report": "report.html", "regret_figure": "report.comparisons",
    "results_table": "report.tables", "save_figure": "report.figures", "write_report": "report.html",
}  # fmt: skip

__getattr__ = lazy_names(__name__, _HOME, "the report")
