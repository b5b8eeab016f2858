"""Scikit-learn estimator, cross-validation of partly labelled data, and evidence search."""
