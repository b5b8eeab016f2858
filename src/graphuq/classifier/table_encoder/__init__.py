"""Tables with text, categories, dates, booleans and gaps become features of numbers."""

from graphuq.classifier.table_encoder.encoder import TableEncoder

__all__ = ["TableEncoder"]
