"""Commands of ``graphuq`` that this package adds."""
