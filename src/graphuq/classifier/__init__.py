"""The scikit-learn estimator: words to parts, labels, incremental updates, saving, search."""
