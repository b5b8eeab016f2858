"""The HTML report of a result or of a regressor: one self-contained page."""

from graphuq.report.html import write_report

__all__ = ["write_report"]
