"""Simulated tissues: cells with expression and places, whose types make patches."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.datasets.base import Dataset
from graphuq.errors import require
from graphuq.utils.checks import generator, require_integer, require_number, require_positive
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import anndata

N_WAVES = 200  # random waves of a smooth field


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tissue(Dataset):
    """Cells of slides of tissue, as `simulated_tissue` makes them; the features are expression.

    Attributes
    ----------
    places : numpy.ndarray, shape (N, 2)
        Place of each cell in its slide, in [0, 1].
    slides : numpy.ndarray of str, shape (N,)
        Slide of each cell.
    given_expression : numpy.ndarray, shape (N, K)
        Probability of each type given the expression of the cell alone, for someone who knows how
        the types are expressed and how frequent they are: no answer without places is better.
    """

    places: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 2)))
    slides: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, dtype=str))
    given_expression: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 0)))

    def _of_rows(self, rows: Int[np.ndarray, " n"]) -> "Tissue":
        chosen = super()._of_rows(rows)
        of_cells = ("places", "slides", "given_expression")
        return dataclasses.replace(chosen, **{name: getattr(self, name)[rows] for name in of_cells})

    def known(self, n_each: int, rng: int | np.random.Generator = 0) -> np.ndarray:
        """Return the types of some random cells of each type, "Unknown" for the others.

        Parameters
        ----------
        n_each : int
            Cells of each type; all of a type that has fewer.
        rng : int or numpy.random.Generator, default 0

        Returns
        -------
        numpy.ndarray of object, shape (N,)
        """
        require_integer("n_each", n_each, 1)
        rng, few = generator(rng), np.full(len(self.classes), "Unknown", dtype=object)
        for name in self.target_names:
            few[rng.permutation(np.flatnonzero(self.classes == name))[:n_each]] = name
        return few

    def to_anndata(self, few: np.ndarray | None = None) -> "anndata.AnnData":
        """Return the cells as an AnnData object.

        ``X`` has the expression, ``obs`` the columns "type", "library_id" and, if known types
        are given, "few"; places are in ``obsm["spatial"]``.

        Raises
        ------
        MissingPackage
            If the extra ``graphuq[anndata]`` is not installed.
        """
        require_extra("anndata")
        import anndata
        import pandas as pd

        names = pd.Index([f"cell{k}" for k in range(len(self.classes))], dtype=object)
        obs = pd.DataFrame({"type": pd.Categorical(self.classes)}, index=names)
        obs["library_id"] = pd.Categorical(self.slides)
        if few is not None:
            obs["few"] = pd.Categorical(few)
        obsm: Any = {"spatial": self.places}
        return anndata.AnnData(self.features, obs=obs, obsm=obsm)


def simulated_tissue(
    n_cells: int = 2000,
    n_types: int = 5,
    n_slides: int = 1,
    *,
    contrast: float = 3.0,
    patchiness: float = 0.9,
    patch_size: float = 0.3,
    n_features: int = 20,
    rng: int | np.random.Generator = 0,
) -> Tissue:
    """Simulate cells whose types make patches, and show in their expression.

    A cell at place s of a slide has the type with the largest ``√p f_k(s) + √(1 − p) ε_k``, with
    smooth random fields f_k of variance 1, noise ε_k ~ N(0, 1), and the patchiness p. Its
    expression is ``c m_k + N(0, I)``, with a random unit vector m_k for each type, and the
    contrast c. Fields of slides are independent.

    Parameters
    ----------
    n_cells, n_types, n_slides : int
        N, K ≥ 2 and number of slides, of about as many cells each.
    contrast : float, default 3
        c ≥ 0; at 0 expression says nothing of types.
    patchiness : float, default 0.9
        p in [0, 1]; at 0 places say nothing of types.
    patch_size : float, default 0.3
        Distance over which the fields change, in units of the side of a slide; they have the
        covariance ``exp(−d² / 2 size²)``.
    n_features : int, default 20
        Columns of the expression.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    Tissue

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> import graphuq as gq
    >>> tissue = gq.datasets.simulated_tissue(300, n_types=3, n_slides=2)
    >>> tissue
    Tissue('tissue', shape (300, 20), classes type 0, type 1, type 2)
    >>> tissue.places.shape, sorted(set(tissue.slides.tolist()))
    ((300, 2), ['slide 0', 'slide 1'])
    """
    for name, value, least in (
        ("n_cells", n_cells, 2), ("n_types", n_types, 2), ("n_slides", n_slides, 1),
        ("n_features", n_features, 1),
    ):  # fmt: skip
        require_integer(name, value, least)
    require_number("contrast", contrast, 0.0)
    require_number("patchiness", patchiness, 0.0)
    require(patchiness <= 1, "patchiness", f"{patchiness}", "use a number from 0 to 1")
    require_positive("patch_size", patch_size)
    rng = generator(rng)
    slide = np.sort(rng.integers(n_slides, size=n_cells))
    places, smooth = rng.random((n_cells, 2)), np.empty((n_cells, n_types))
    for own in (np.flatnonzero(slide == s) for s in range(n_slides)):
        smooth[own] = _smooth_fields(places[own], n_types, patch_size, rng)
    noise = rng.normal(size=(n_cells, n_types))
    codes = (np.sqrt(patchiness) * smooth + np.sqrt(1 - patchiness) * noise).argmax(axis=1)
    centres = rng.normal(size=(n_types, n_features))
    centres *= contrast / np.linalg.norm(centres, axis=1, keepdims=True)
    expression = centres[codes] + rng.normal(size=(n_cells, n_features))
    return Tissue(
        features=expression,
        classes=np.array([f"type {k}" for k in range(n_types)])[codes],
        name="tissue",
        source="simulated",
        description=f"Cells of {n_slides} slide(s): contrast {contrast:g} of expression, "
        f"patchiness {patchiness:g}.",
        places=places,
        slides=np.array([f"slide {s}" for s in range(n_slides)])[slide],
        given_expression=_given_expression(expression, centres, codes),
    )


def _smooth_fields(
    places: Float[np.ndarray, "n 2"], n_fields: int, size: float, rng: np.random.Generator
) -> Float[np.ndarray, "n K"]:
    """Return smooth fields at places, as sums of random waves (Rahimi & Recht 2007)."""
    frequency = rng.normal(size=(n_fields, N_WAVES, 2)) / size
    phase = rng.uniform(0, 2 * np.pi, (n_fields, 1, N_WAVES))
    waves = np.cos(places @ np.swapaxes(frequency, 1, 2) + phase)
    amplitude = rng.normal(size=(n_fields, N_WAVES)) * np.sqrt(2 / N_WAVES)
    return np.einsum("knw,kw->nk", waves, amplitude)


def _given_expression(
    expression: Float[np.ndarray, "N d"], centres: Any, codes: Any
) -> Float[np.ndarray, "N K"]:
    """Return the probabilities of the types given expression, by Bayes' rule."""
    counts = np.bincount(codes, minlength=len(centres))
    with np.errstate(divide="ignore"):
        logs = expression @ centres.T - 0.5 * (centres**2).sum(axis=1) + np.log(counts)
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
