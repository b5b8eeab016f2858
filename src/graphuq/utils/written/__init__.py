"""Cells as people write them: numbers with units and marks, dates, words for "nothing"."""
