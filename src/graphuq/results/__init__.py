"""The answer for every node: summaries, diagnostics, storage."""
