"""Fits whose rows, graph and eigenpairs are parts in a store; see `graphuq.engine`."""
