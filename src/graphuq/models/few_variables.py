"""Adds to a basis functions of the few variables of a table that tell the given classes."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.evidence.few_variables import MAX_LABELS, few_variables
from graphuq.models.labels import Labels
from graphuq.spectrum.few_variables import (
    FEW_VARIABLES,
    differences,
    mean_differences,
    scales_of_few,
)

MIN_VARIABLES = 2


def with_few_variables(basis: Any, labels: Labels) -> Any:
    """Return the basis of a table with a block of `FunctionsOfFew`; others as they are.

    A basis that does not know its table stays as it is, too: those of files, and of graphs that
    are given beside features.
    """
    table = basis.table
    if table is None or table.variables.n_variables < MIN_VARIABLES:
        return basis
    chosen = _some_of_each(np.asarray(labels.codes))
    nodes, codes = np.asarray(labels.nodes)[chosen], np.asarray(labels.codes)[chosen]
    if len(np.unique(codes)) < 2:
        return basis
    variables, means = table.variables, mean_differences(table.landmarks, table.variables)
    among = differences(table.rows(nodes), variables) / means[:, None, None]
    found = few_variables(among, codes)
    scales = scales_of_few(variables, means, found.chosen, found.rate)
    kept = [block for block in basis.blocks if block.name != FEW_VARIABLES]
    block = table.functions(scales, found.log_prior)
    return dataclasses.replace(basis, blocks=(*kept, block))


def _some_of_each(codes: Int[np.ndarray, " J"]) -> Int[np.ndarray, " j"]:
    """Return a random part of the labels, with one of each class, or all of few."""
    order = np.random.default_rng(0).permutation(len(codes))
    first = np.unique(codes[order], return_index=True)[1]
    return np.append(order[first], np.delete(order, first))[:MAX_LABELS]


def log_prior_of_sets(average: Any) -> Float[np.ndarray, " M"]:
    """Return, for each component, the log prior probability of the variables that were chosen."""
    found = np.zeros(len(average.prior.log_probabilities))
    for block in average.spectrum.blocks:
        found += average.prior.uses(block.name) * getattr(block, "log_prior", 0.0)
    return found


def has_same_few(basis: Any, other: Any) -> bool:
    """Return whether two bases have functions of the same few variables, or none."""
    found = [
        [block.scales for block in one.blocks if block.name == FEW_VARIABLES]
        for one in (basis, other)
    ]
    return len(found[0]) == len(found[1]) and all(map(np.array_equal, *found))
