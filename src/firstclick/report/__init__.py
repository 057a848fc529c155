"""Results as tables, figures and one HTML page. Imports matplotlib: load it only when it is needed."""

from firstclick.report.comparisons import regret_figure
from firstclick.report.figures import save_figure
from firstclick.report.headline import headline
from firstclick.report.html import html_report, write_report
from firstclick.report.tables import results_table

__all__ = ["headline", "html_report", "regret_figure", "results_table", "save_figure", "write_report"]
