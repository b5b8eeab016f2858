"""Scikit-learn estimator, cross-validation of partly labelled data, and evidence search."""

from graphuq.utils.lazy_imports import lazy_names

__getattr__ = lazy_names(__name__, {"GraphClassifier": "classifier"})
