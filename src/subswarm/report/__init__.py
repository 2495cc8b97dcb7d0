"""Reports: one HTML page each, with everything inside."""

from subswarm.report.found import selection_page
from subswarm.report.live import LiveServer
from subswarm.report.selection import Selection
from subswarm.report.study import study_page

__all__ = ["LiveServer", "Selection", "selection_page", "study_page"]
