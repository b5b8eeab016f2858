"""Results: numbers for every node, diagnostics, tables, files."""

from graphuq.utils.lazy_imports import lazy_names

__getattr__ = lazy_names(__name__, {"Result": "result", "write_table": "table"})
