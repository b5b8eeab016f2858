"""Scikit-learn estimator of numbers at all nodes of a graph from a few of them."""
