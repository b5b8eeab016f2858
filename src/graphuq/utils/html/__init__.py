"""HTML pages: one look, figures embedded, written whole."""

from graphuq.utils.html.page import embedded, write_page

__all__ = ["embedded", "write_page"]
