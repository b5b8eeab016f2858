"""Adds to a basis functions of the few variables of a table that tell the given classes."""

import dataclasses
from typing import Any

import numpy as np

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
    order = np.random.default_rng(0).permutation(len(labels.codes))[:MAX_LABELS]
    nodes, codes = np.asarray(labels.nodes)[order], np.asarray(labels.codes)[order]
    if len(np.unique(codes)) < 2:
        return basis
    variables, means = table.variables, mean_differences(table.landmarks, table.variables)
    among = differences(table.rows(nodes), variables) / means[:, None, None]
    found = few_variables(among, codes)
    scales = scales_of_few(variables, means, found.chosen, found.rate)
    kept = [block for block in basis.blocks if block.name != FEW_VARIABLES]
    block = table.functions(scales, found.log_prior)
    return dataclasses.replace(basis, blocks=(*kept, block))


def has_same_few(basis: Any, other: Any) -> bool:
    """Return whether two bases have functions of the same few variables, or none."""
    found = [
        [block.scales for block in one.blocks if block.name == FEW_VARIABLES]
        for one in (basis, other)
    ]
    return len(found[0]) == len(found[1]) and all(map(np.array_equal, *found))
