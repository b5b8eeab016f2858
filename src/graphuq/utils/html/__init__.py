"""Self-contained HTML pages with a common layout and embedded figures."""

from graphuq.utils.html.page import embedded, write_page

__all__ = ["embedded", "write_page"]
