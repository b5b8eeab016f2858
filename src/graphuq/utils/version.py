"""The version of graphuq."""

__version__ = "0.2.0"  # also in pyproject.toml; a test compares them
