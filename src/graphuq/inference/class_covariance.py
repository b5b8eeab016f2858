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
from graphuq.inference.near_classes import Group

MAX_DENSE_BYTES = 4e9  # of the matrix of all coordinates
NAMES = ("base", "toward", "shared", "common", "at_labels")


class Leads(NamedTuple):
    """Leads ``h = v − u_k`` of the noisy value of each label's own class, and their sites.

    Attributes
    ----------
    codes : numpy.ndarray of int, shape (J,)
        Own class of each label.
    mean : numpy.ndarray, shape (J, K)
    precision, shift : numpy.ndarray, shape (J, K)
        Sites of the leads.
    noise_std : float
        γ of the factors ``Φ(h / γ)``, which the sites replace.
    """

    codes: Int[np.ndarray, " J"]
    mean: Float[np.ndarray, "J K"]
    precision: Float[np.ndarray, "J K"]
    shift: Float[np.ndarray, "J K"]
    noise_std: float

    @staticmethod
    def of(
        labels: Int[np.ndarray, " J"],
        sites: Float[np.ndarray, "2 J K"],
        mean: Float[np.ndarray, "J K"],
        noise_std: float,
    ) -> "Leads":
        """Return the leads of nested sites, given the means of the fields at the labels."""
        weights, shifts = sites
        center = ((weights * mean).sum(axis=1) + shifts.sum(axis=1)) / weights.sum(axis=1)
        return Leads(labels, center[:, None] - mean, weights, shifts, noise_std)


class LeadsAt(NamedTuple):
    """Leads at the label that tells most of each of B nodes, one of the likeliest class there.

    Attributes
    ----------
    covariance : numpy.ndarray, shape (B, K)
        Covariance of ``u_t − u_k`` at the node and the lead over class k.
    variance, mean, precision, shift : numpy.ndarray, shape (B, K)
        Of the lead, and its site.
    noise_std : float
    """

    covariance: Float[np.ndarray, "B K"]
    variance: Float[np.ndarray, "B K"]
    mean: Float[np.ndarray, "B K"]
    precision: Float[np.ndarray, "B K"]
    shift: Float[np.ndarray, "B K"]
    noise_std: float


class DenseCovariance(NamedTuple):
    """A matrix of the coordinates of all classes, with the methods of `ClassCovariance`.

    Attributes
    ----------
    matrix : numpy.ndarray, shape (K r, K r)
    n_classes : int
        K.
    """

    matrix: Float[np.ndarray, "n n"]
    n_classes: int

    @property
    def blocks(self) -> Float[np.ndarray, "K r K r"]:
        """The matrix by classes."""
        shape = self.n_classes, len(self.matrix) // self.n_classes
        return self.matrix.reshape(*shape, *shape)

    @property
    def n_numbers(self) -> int:
        """How many numbers `at` needs for a node, about."""
        return len(self.matrix)

    def mean_of_classes(self) -> Float[np.ndarray, "r r"]:
        """Return the covariance within a class, over all classes."""
        return np.asarray(np.einsum("kikj->ij", self.blocks) / self.n_classes)

    def draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "S K r"]:
        """Return draws of the coordinates of all classes, of mean zero."""
        root = np.linalg.cholesky(self.matrix)
        return np.asarray((rng.normal(size=(n, len(root))) @ root.T).reshape(n, self.n_classes, -1))

    def at(self, loadings: Float[np.ndarray, "B r"]) -> "DenseFieldsAt":
        """Return the covariances of the K fields at nodes, given their loadings."""
        return DenseFieldsAt(np.swapaxes(self.blocks, 1, 2), loadings)


class DenseFieldsAt:
    """The methods of `FieldsAt` for the blocks of a matrix, shape (K, K, r, r)."""

    def __init__(
        self, blocks: Float[np.ndarray, "K K r r"], loadings: Float[np.ndarray, "B r"]
    ) -> None:
        self.blocks, self.loadings = blocks, loadings
        own = np.einsum("kkrs->rks", blocks)
        self.variance = np.maximum(_quadratic(loadings, _side_by_side(own)), 0.0)

    def apart(self, top: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B K"]:
        """Return ``Var(u_t − u_k)`` of class t of each node and all k."""
        self._with_top, rows = np.empty_like(self.variance), np.arange(len(top))
        for t in np.unique(top):
            at = np.flatnonzero(top == t)
            forms = _side_by_side(self.blocks[:, t].transpose(1, 0, 2))
            self._with_top[at] = _quadratic(self.loadings[at], forms)
        found = self.variance[rows, top, None] + self.variance - 2 * self._with_top
        return np.maximum(found, 0.0)

    def shared_with(
        self, top: Int[np.ndarray, " B"], a: Int[np.ndarray, " B"], b: Int[np.ndarray, " B"]
    ) -> Float[np.ndarray, " B"]:
        """Return ``Cov(u_t − u_a, u_t − u_b)`` of three classes of each node, after `apart`."""
        n_classes, between = len(self.blocks), np.empty(len(top))
        for pair in np.unique(a * n_classes + b):
            k, other = divmod(int(pair), n_classes)
            at = np.flatnonzero((a == k) & (b == other))
            between[at] = _quadratic(self.loadings[at], self.blocks[k, other])[:, 0]
        rows = np.arange(len(top))
        with_a, with_b = self._with_top[rows, a], self._with_top[rows, b]
        return np.asarray(self.variance[rows, top] - with_a - with_b + between)

    def leads(self) -> None:
        """Return None: the sites of the labels are not known here."""


def _side_by_side(forms: Float[np.ndarray, "r K r"]) -> Float[np.ndarray, "r m"]:
    return np.ascontiguousarray(forms).reshape(len(forms), -1)


def _quadratic(
    loadings: Float[np.ndarray, "B r"], forms: Float[np.ndarray, "r m"]
) -> Float[np.ndarray, "B K"]:
    """Return ``l F_k l`` of each row l and matrix F_k, given the matrices side by side."""
    products = (loadings @ forms).reshape(len(loadings), -1, loadings.shape[1])
    return np.asarray(np.einsum("bkr,br->bk", products, loadings))


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
    leads : Leads
    """

    base: Float[np.ndarray, "r r"]
    toward: Float[np.ndarray, "r J"]
    shared: Float[np.ndarray, "r J"]
    common: Float[np.ndarray, "J J"]
    at_labels: Float[np.ndarray, "J J"]
    groups: tuple[tuple[Group, np.ndarray], ...]
    leads: Leads

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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return it as arrays, from which `of_arrays` makes it again."""
        found: dict[str, np.ndarray] = {name: getattr(self, name) for name in NAMES}
        for g, (group, change) in enumerate(self.groups):
            found |= {f"classes_{g}": group.classes, f"places_{g}": group.places}
            found |= {f"used_{g}": group.used, f"change_{g}": change}
        return found | {f"lead_{name}": np.asarray(a) for name, a in self.leads._asdict().items()}

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray]) -> "ClassCovariance":
        """Return the covariance that `arrays` took apart."""
        groups: list[tuple[Group, np.ndarray]] = []
        while f"classes_{len(groups)}" in arrays:
            g = len(groups)
            own: Any = [arrays[f"{name}_{g}"] for name in Group._fields]
            groups.append((Group(*own), arrays[f"change_{g}"]))
        of_leads: Any = [arrays[f"lead_{name}"] for name in Leads._fields]
        leads = Leads(*of_leads)._replace(noise_std=float(of_leads[-1]))
        found: Any = [*(arrays[name] for name in NAMES), tuple(groups), leads]
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

    def leads(self) -> LeadsAt:
        """Return the leads at the label of class t that tells most of each node, after `apart`."""
        own, top = self._leads, self._top
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
