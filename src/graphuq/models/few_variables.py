"""Adds to a basis functions of the few variables of a table that tell the given classes."""

import dataclasses
from typing import Any

import numpy as np

from graphuq.evidence.few_variables import MAX_LABELS, few_variables
from graphuq.graphs.principal import PrincipalComponents
from graphuq.graphs.variables import variables_of
from graphuq.models.labels import Labels
from graphuq.spectrum.exponential import EXPONENTIAL
from graphuq.spectrum.few_variables import (
    FEW_VARIABLES,
    FunctionsOfFew,
    differences,
    mean_differences,
    scales_of_few,
)
from graphuq.spectrum.node_blocks import NODE_BLOCKS

MIN_VARIABLES = 2


def with_few_variables(basis: Any, labels: Labels) -> Any:
    """Return the basis of a table with a block of `FunctionsOfFew`; others as they are.

    A basis without the features of which it was made stays as it is, too: those of files, of
    stores, and of graphs that are given beside features.
    """
    kept = [block for block in basis.blocks if block.name != FEW_VARIABLES]
    known = [block for block in kept if block.name == EXPONENTIAL]
    if not known or basis.features is None or basis.settings.get(NODE_BLOCKS):
        return basis
    components = getattr(known[0], "components", None) or PrincipalComponents(basis.features)
    features, variables = components.features, variables_of(components)
    if variables is None or variables.n_variables < MIN_VARIABLES:
        return basis
    order = np.random.default_rng(0).permutation(len(labels.codes))[:MAX_LABELS]
    nodes, codes = np.asarray(labels.nodes)[order], np.asarray(labels.codes)[order]
    if len(np.unique(codes)) < 2:
        return basis
    means = mean_differences(features, variables)
    found = few_variables(differences(features[nodes], variables) / means[:, None, None], codes)
    scales = scales_of_few(variables, means, found.chosen, found.rate)
    block = FunctionsOfFew(features, scales, found.log_prior, components=components)
    return dataclasses.replace(basis, blocks=(*kept, block))


def has_same_few(basis: Any, other: Any) -> bool:
    """Return whether two bases have functions of the same few variables, or none."""
    found = [
        [block.scales for block in one.blocks if block.name == FEW_VARIABLES]
        for one in (basis, other)
    ]
    return len(found[0]) == len(found[1]) and all(map(np.array_equal, *found))
