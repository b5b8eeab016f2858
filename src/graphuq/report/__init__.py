"""Floor 7: `Result` → one self-contained HTML page."""

from graphuq.report.html import write_report

__all__ = ["write_report"]
