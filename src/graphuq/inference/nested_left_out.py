"""Nested expectation propagation without each of the labels in turn.

A cavity, the posterior without the site of a label, keeps the sites of all others. These know the
label that is left out. Where it contradicts its neighbours that matters for more than two classes.
Here the other sites are fitted again, for all labels at once.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_start import StartingSites

TOLERANCE, MAX_SWEEPS = 1e-2, 50
JITTER = 1e-9  # added to the diagonal of the covariance, as a share of its largest entry


def fields_without_each(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    start: StartingSites | None = None,
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K K"]] | None:
    """Return mean and covariance of the K fields at each label, given all others.

    A fit takes some ten sweeps of O(K J³) operations for each label. It is None if one of them does
    not converge.

    Parameters
    ----------
    factor : numpy.ndarray, shape (J, r)
        F, the map from the white coordinates of a class to its field at the labels.
    labels : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
        K.
    noise_std : float
        γ > 0.
    start : StartingSites, optional
        Sites given all labels.
    """
    from graphuq.inference.nested_sites import fit_sites  # imports Numba

    n_labels = len(labels)
    covariance = factor @ factor.T
    covariance[np.diag_indices(n_labels)] += JITTER * covariance.diagonal().max()
    fits = fit_sites(
        np.broadcast_to(covariance, (n_labels, n_labels, n_labels)),
        labels,
        n_classes,
        noise_std,
        MAX_SWEEPS,
        TOLERANCE,
        start,
        np.arange(n_labels),
    )
    if any(one is None or not one.converged for one in fits):
        return None
    found = [_fields_at(one, j) for j, one in enumerate(fits) if one is not None]
    return np.stack([mean for mean, _ in found]), np.stack([spread for _, spread in found])


def _fields_at(sites: Any, j: int) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K K"]]:
    """Return mean and covariance of the K fields at label j."""
    before = sites.covariance @ sites.pull  # (J, K)
    gained = np.einsum("kij,jk->ki", sites.gains, before)
    common = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=0))
    gained -= sites.gains @ common
    mean = sites.covariance[j] @ (sites.pull - gained.T)
    across = sites.gains @ sites.covariance[j]  # (K, J)
    spread = across @ sites.inner_root.T
    alone = sites.covariance[j, j] - across @ sites.covariance[j]
    return mean, np.diag(alone) + spread @ spread.T
