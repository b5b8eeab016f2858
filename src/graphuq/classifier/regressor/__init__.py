"""Scikit-learn estimator of numbers at all nodes of a graph from a few of them."""

from graphuq.utils.lazy_imports import lazy_names

__getattr__ = lazy_names(__name__, {"GraphRegressor": "regressor"})
