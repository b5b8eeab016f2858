"""Covariance of the coordinates of many classes, each of which differs from one at few labels.

See `nested_shared`. With ``B = I + Fᵀ D F`` and ``Z = B⁻¹ Fᵀ``, the coordinates of classes k and l
have the covariance

    δ_kl (B⁻¹ − Z_S M_k Z_Sᵀ) + C_k V C_lᵀ,   C_k = Fᵀ D + Z_S M_k,  S the labels near k.

The first part of C_k is common to all classes. The difference of two fields does not have it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import require
from graphuq.inference.dense_covariance import DenseCovariance
from graphuq.inference.label_leads import Leads, LeadsAt
from graphuq.inference.near_classes import Group

MAX_DENSE_BYTES = 4e9  # of the matrix of all coordinates
NAMES = ("base", "toward", "shared", "common", "at_labels")


class ClassCovariance(NamedTuple):
    """Covariance matrix of K r white coordinates, in O(r² + J² + K s²) numbers.

    Attributes
    ----------
    base : numpy.ndarray, shape (r, r)
        B⁻¹.
    toward : numpy.ndarray, shape (r, J)
        Z.
    shared : numpy.ndarray, shape (r, J)
        ``Fᵀ D``.
    common : numpy.ndarray, shape (J, J)
        V.
    at_labels : numpy.ndarray, shape (J, J)
        ``A = F B⁻¹ Fᵀ``.
    groups : tuple of (Group, numpy.ndarray of shape (c, s, s))
        Classes with the labels near them, and M_k of each.
    leads : Leads, optional
        See `with_leads`.
    """

    base: Float[np.ndarray, "r r"]
    toward: Float[np.ndarray, "r J"]
    shared: Float[np.ndarray, "r J"]
    common: Float[np.ndarray, "J J"]
    at_labels: Float[np.ndarray, "J J"]
    groups: tuple[tuple[Group, np.ndarray], ...]
    leads: Leads | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return sum(len(group.classes) for group, _ in self.groups)

    @property
    def n_numbers(self) -> int:
        """How many numbers `at` needs for a node, about."""
        return 4 * (self.n_classes + len(self.common))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Return the matrix of all coordinates, of (K r)² numbers."""
        n_classes, r = self.n_classes, len(self.base)
        n_bytes = 8.0 * (n_classes * r) ** 2
        require(
            n_bytes <= MAX_DENSE_BYTES,
            "inference",
            f"the covariance of {n_classes} classes in {r} coordinates each fills "
            f"{n_bytes / 1e9:.0f} GB",
            "use what needs no covariance of all classes together: probabilities, their table, "
            "latent means and deviations, or draws of the field",
        )
        loads = np.empty((n_classes, r, len(self.common)))
        own = np.empty((n_classes, r, r))
        for k, places, change in self._classes():
            toward = self.toward[:, places]
            loads[k], own[k] = self.shared, self.base - toward @ change @ toward.T
            loads[k][:, places] += toward @ change
        flat = loads.reshape(n_classes * r, -1)
        found = flat @ self.common @ flat.T
        blocks = found.reshape(n_classes, r, n_classes, r)
        blocks[np.arange(n_classes), :, np.arange(n_classes)] += own
        return found if dtype is None else found.astype(dtype)

    def mean_of_classes(self) -> Float[np.ndarray, "r r"]:
        """Return the covariance within a class, over all classes."""
        total = np.zeros_like(self.base)
        for _, places, change in self._classes():
            toward, loads = self.toward[:, places], self.shared.copy()
            loads[:, places] += toward @ change
            total += self.base - toward @ change @ toward.T + loads @ self.common @ loads.T
        return np.asarray(total / self.n_classes)

    def draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "S K r"]:
        """Return draws of the coordinates of all classes, of mean zero."""
        r = len(self.base)
        found = np.empty((n, self.n_classes, r))
        noise = rng.normal(size=(n, len(self.common))) @ np.linalg.cholesky(self.common).T
        together = noise @ self.shared.T
        for k, places, change in self._classes():
            toward = self.toward[:, places]
            root = np.linalg.cholesky(self.base - toward @ change @ toward.T)
            found[:, k] = rng.normal(size=(n, r)) @ root.T + together
            found[:, k] += noise[:, places] @ (toward @ change).T
        return found

    def at(self, loadings: Float[np.ndarray, "B r"]) -> "FieldsAt":
        """Return the covariances of the K fields at nodes, given their loadings."""
        return FieldsAt(self, loadings)

    def with_leads(
        self, leads: Leads, factor: Float[np.ndarray, "J r"], n_rows: int
    ) -> "ClassCovariance":
        """Return the same with the leads of the labels, which `FieldsAt.leads` needs."""
        return self._replace(leads=leads)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return it as arrays, from which `of_arrays` makes it again."""
        found: dict[str, np.ndarray] = {name: getattr(self, name) for name in NAMES}
        for g, (group, change) in enumerate(self.groups):
            found |= {f"classes_{g}": group.classes, f"places_{g}": group.places}
            found |= {f"used_{g}": group.used, f"change_{g}": change}
        return found

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray]) -> "ClassCovariance":
        """Return the covariance that `arrays` took apart."""
        groups: list[tuple[Group, np.ndarray]] = []
        while f"classes_{len(groups)}" in arrays:
            g = len(groups)
            own: Any = [arrays[f"{name}_{g}"] for name in Group._fields]
            groups.append((Group(*own), arrays[f"change_{g}"]))
        found: Any = [*(arrays[name] for name in NAMES), tuple(groups)]
        return ClassCovariance(*found)

    def _classes(self) -> Any:
        """Yield the number of each class, the labels near it, and M_k."""
        for group, changes in self.groups:
            for k, places, used, change in zip(*group[:3], changes, strict=True):
                yield int(k), places[used], change[np.ix_(used, used)]


class FieldsAt:
    """The K fields at B nodes: their variances, and covariances of their differences.

    Parameters
    ----------
    covariance : ClassCovariance
    loadings : numpy.ndarray, shape (B, r)

    Attributes
    ----------
    variance : numpy.ndarray, shape (B, K)
        Variance of each field.
    """

    def __init__(self, covariance: ClassCovariance, loadings: Float[np.ndarray, "B r"]) -> None:
        self.common, self.groups = covariance.common, covariance.groups
        self._at_labels, self._leads = covariance.at_labels, covariance.leads
        self.toward = np.ascontiguousarray((loadings @ covariance.toward).T)  # (J, B)
        shared = loadings @ covariance.shared
        spread = shared @ self.common
        base = ((loadings @ covariance.base) * loadings).sum(axis=1)
        n_classes = covariance.n_classes
        self._own = np.empty((n_classes, len(loadings)))  # without what all fields have in common
        crossed = np.empty_like(self._own)
        for group, change in self.groups:
            seen, moved = self._moved(group, change)
            inner = self.common[group.places[:, :, None], group.places[:, None, :]]
            self._own[group.classes] = base + ((inner @ moved - seen) * moved).sum(axis=1)
            crossed[group.classes] = (spread.T[group.places] * moved).sum(axis=1)
        variance = self._own + 2 * crossed + (spread * shared).sum(axis=1)
        self.variance = np.maximum(variance, 0.0).T
        self._where = {
            int(k): (group, change, i)
            for group, change in self.groups
            for i, k in enumerate(group.classes)
        }

    def apart(self, top: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B K"]:
        """Return ``Var(u_t − u_k)`` of class t of each node and all k."""
        self._top = top
        self._pulled = pulled = np.empty_like(self.toward)  # V C_tᵀ l, without the common part
        for t in np.unique(top).tolist():
            at = np.flatnonzero(top == t)
            places, moved = self._of_class(t, at)
            pulled[:, at] = self.common[:, places] @ moved
        with_top = np.empty_like(self._own)
        for group, change in self.groups:
            _, moved = self._moved(group, change)
            with_top[group.classes] = (pulled[group.places] * moved).sum(axis=1)
        self._with_top, rows = with_top, np.arange(len(top))
        found = self._own[top, rows] + self._own - 2 * with_top
        found[top, rows] = 0.0
        return np.maximum(found, 0.0).T

    def shared_with(
        self, top: Int[np.ndarray, " B"], a: Int[np.ndarray, " B"], b: Int[np.ndarray, " B"]
    ) -> Float[np.ndarray, " B"]:
        """Return ``Cov(u_t − u_a, u_t − u_b)`` of three classes of each node, after `apart`."""
        rows, between = np.arange(len(top)), np.empty(len(top))
        n_classes = len(self._own)
        for pair in np.unique(a * n_classes + b).tolist():
            at = np.flatnonzero(a * n_classes + b == pair)
            (places, moved), (others, rest) = (
                self._of_class(k, at) for k in divmod(pair, n_classes)
            )
            between[at] = (moved * (self.common[np.ix_(places, others)] @ rest)).sum(axis=0)
        with_a, with_b = self._with_top[a, rows], self._with_top[b, rows]
        return np.asarray(self._own[top, rows] - with_a - with_b + between)

    def leads(self) -> LeadsAt | None:
        """Return the leads at the label of class t that tells most of each node, after `apart`.

        None if the covariance does not have those of the labels.
        """
        own, top = self._leads, self._top
        if own is None:
            return None
        tells = self.toward**2 / self._at_labels.diagonal()[:, None]
        label = np.where(own.codes[:, None] == top, tells, -1.0).argmax(axis=0)
        rows = np.arange(len(top))
        seen_at, common_at = self._at_labels[:, label], self.common[:, label]
        covariance, variance = np.empty((2, *self._own.shape))
        for group, change in self.groups:
            seen, moved = self._moved(group, change)
            of_label = change @ seen_at[group.places]
            spread = self.common[group.places[:, :, None], group.places[:, None, :]] @ of_label
            found = ((spread - common_at[group.places]) * moved).sum(axis=1)
            found -= ((seen + self._pulled[group.places]) * of_label).sum(axis=1)
            covariance[group.classes] = found
            spread -= 2 * common_at[group.places] + seen_at[group.places]
            variance[group.classes] = (spread * of_label).sum(axis=1)
        covariance += self.toward[label, rows] + self._pulled[label, rows]
        variance += self.common[label, label] + self._at_labels[label, label]
        sites = own.mean[label], own.precision[label], own.shift[label]
        return LeadsAt(covariance.T, variance.T, *sites, own.noise_std)

    def _moved(self, group: Group, change: Float[np.ndarray, "c s s"]) -> tuple[Any, Any]:
        """Return ``Z_Sᵀ l`` and ``M_k Z_Sᵀ l`` of some classes, each (c, s, B)."""
        seen = self.toward[group.places]
        return seen, change @ seen

    def _of_class(self, k: int, at: Int[np.ndarray, " b"]) -> tuple[Any, Any]:
        """Return the labels near a class, and ``M_k Z_Sᵀ l`` at some nodes."""
        group, change, i = self._where[k]
        return group.places[i], change[i] @ self.toward[np.ix_(group.places[i], at)]


def of_classes(covariance: Any, n_classes: int) -> ClassCovariance | DenseCovariance:
    """Return the covariance of the coordinates of all classes, from what an answer has."""
    if isinstance(covariance, ClassCovariance):
        return covariance
    return DenseCovariance(np.asarray(covariance), n_classes)
