"""Reports: one HTML page each, with everything inside."""

from subswarm.report.found import selection_page
from subswarm.report.selection import Selection

__all__ = ["Selection", "selection_page"]
