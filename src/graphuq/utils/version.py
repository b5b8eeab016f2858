"""The version of graphuq."""

__version__ = "0.1.0"  # also in pyproject.toml; a test compares them
