"""The version of graphuq."""

__version__ = "0.3.0"  # changes/release.py writes it in all places; a test compares them
