"""Self-contained HTML pages with a common layout, embedded figures and scripts."""

from graphuq.utils.html.page import embedded, write_page
from graphuq.utils.html.scripts import bundled

__all__ = ["bundled", "embedded", "write_page"]
