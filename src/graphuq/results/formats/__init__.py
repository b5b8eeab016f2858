"""Formats of tables, one file each; a format registers where its class is defined."""

from graphuq.results.formats.base import (
    TableFormat,
    format_of,
    formats_of_reading,
    table_formats,
)
from graphuq.results.formats.csv import Csv
from graphuq.results.formats.json_lines import JsonLines
from graphuq.results.formats.parquet import Parquet

__all__ = [
    "Csv",
    "JsonLines",
    "Parquet",
    "TableFormat",
    "format_of",
    "formats_of_reading",
    "table_formats",
]
