"""A classifier that works in a store, from one dictionary of options."""

import graphuq as gq

OF_STORE = ("n_parts", "memory", "tolerance", "search", "no_features")


def in_store(folder, **options):
    """Return the classifier; options of `gq.Store` are among the others."""
    own = {name: options.pop(name) for name in OF_STORE if name in options}
    return gq.GraphClassifier(store=gq.Store(folder, **own), **options)
