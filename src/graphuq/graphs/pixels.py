"""Graph of the pixels of a scene: neighbours in place, and neighbours in spectra.

Neighbouring pixels are alike unless an edge of a field is between them, and so the weight of two
neighbours falls with the difference of their spectra, as in the segmentation of images (Shi & Malik
2000). Such a graph says nothing about a field far away that has the same crop. So a pixel is also
joined to those whose spectra are the most similar. These are means over windows of 3 × 3 pixels,
in the components that have the most variance beside that of the noise (minimum noise fraction,
Green, Berman, Switzer & Craig 1988).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.linalg import eigh
from scipy.ndimage import uniform_filter
from scipy.spatial import cKDTree

from graphuq.errors import require
from graphuq.graphs.adjacency import from_adjacency
from graphuq.graphs.graph import Graph
from graphuq.graphs.knn import knn_graph
from graphuq.graphs.node_graph import node_graph
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import held_warnings

PLACES, SPECTRA = "places", "spectra"  # names of the graphs
N_PLACES, N_SPECTRA = 8, 10  # neighbours of a pixel in place, and in spectra
SPECTRAL_SHARE = 0.1  # weight of the edges between similar spectra, relative to neighbours in place
CONTRAST = 2.0  # mean squared difference of spectra, in medians of neighbours, that divides fields
WINDOW = 3  # pixels of the side of a window whose mean is taken
N_DIRECTIONS = 20  # principal components of the means that are compared, at most
NOISE_FLOOR = 1e-4  # of the variance of a band, added to that of its noise


class Pixels(NamedTuple):
    """Some pixels of a scene.

    Attributes
    ----------
    places : numpy.ndarray of int, shape (N, 2)
        Row and column of each pixel.
    spectra : numpy.ndarray, shape (N, B)
    means : numpy.ndarray, shape (N, B)
        Means of the spectra of the window of 3 × 3 pixels around each.
    """

    places: Int[np.ndarray, "N 2"]
    spectra: Float[np.ndarray, "N B"]
    means: Float[np.ndarray, "N B"]

    @staticmethod
    def of(
        values: Float[np.ndarray, "B R C"],
        chosen: Bool[np.ndarray, "R C"],
        mask: Bool[np.ndarray, "R C"],
        corner: tuple[int, int] = (0, 0),
    ) -> "Pixels":
        """Return the chosen pixels of a part of a scene, row by row.

        Parameters
        ----------
        values : numpy.ndarray, shape (B, R, C)
        chosen : numpy.ndarray of bool, shape (R, C)
            Which pixels are returned.
        mask : numpy.ndarray of bool, shape (R, C)
            Which pixels have data. Others do not enter the means.
        corner : tuple of int, default (0, 0)
            Place of the first pixel of the part.
        """
        counts = uniform_filter(mask.astype(np.float64), WINDOW, mode="constant")[chosen]
        spectra, means = (np.empty((int(chosen.sum()), len(values))) for _ in range(2))
        for b, band in enumerate(values):
            known = np.where(mask, band, 0.0).astype(np.float64)
            spectra[:, b] = known[chosen]
            means[:, b] = uniform_filter(known, WINDOW, mode="constant")[chosen] / counts
        return Pixels(np.argwhere(chosen) + np.array(corner), spectra, means)

    @staticmethod
    def joined(parts: "Iterable[Pixels]") -> "Pixels":
        """Return the pixels of several parts, one after the other."""
        return Pixels(*(np.concatenate(some) for some in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class PixelGraph:
    """Graph whose nodes are some or all pixels of a scene, to which other pixels can be joined.

    Attributes
    ----------
    pixels : Pixels
        The nodes, N of them.

    Raises
    ------
    InvalidInput
        If there are fewer than two pixels, or spectra are not finite.
    """

    pixels: Pixels

    def __post_init__(self) -> None:
        n = len(self.pixels.places)
        require(n >= 2, "pixels", f"{n} pixel(s) with data", "give at least 2")
        finite = bool(np.isfinite(self.pixels.spectra).all())
        require(finite, "values", "NaN or infinite where the mask has data", "mask such pixels")

    @cached_property
    def graph(self) -> Graph:
        """Joint graph of places and spectra, with those of either alone beside it."""
        total = self._in_place + SPECTRAL_SHARE * self._in_spectra
        joint = from_adjacency(sparse.csr_array(total))
        with held_warnings():  # one of several parts may fall apart
            parts = [from_adjacency(part) for part in (self._in_place, self._in_spectra)]
        names = (f"{PLACES} and {SPECTRA}", PLACES, SPECTRA)
        return node_graph(dict(zip(names, (joint, *parts), strict=True)))

    def connect(self, pixels: Pixels) -> sparse.csr_array:
        """Return the weights from other pixels to the nodes, of the rule that made the edges.

        Parameters
        ----------
        pixels : Pixels
            M pixels; one that is a node is joined to itself too.

        Returns
        -------
        scipy.sparse.csr_array, shape (M, N)
        """
        n_nodes, n = len(self.pixels.places), len(pixels.places)
        k = min(N_PLACES, n_nodes)
        near = np.reshape(self._tree.query(pixels.places, k)[1], (n, k))
        rows = np.repeat(np.arange(n), k)
        weights = self._likeness(pixels.spectra, rows, near.ravel()) / self._mean_degrees[0]
        places = sparse.csr_array((weights, (rows, near.ravel())), shape=(n, n_nodes))
        space: Any = self._spectral_graph.feature_space
        spectra = space.connect(self._in_noise(pixels.means)) / self._mean_degrees[1]
        return sparse.csr_array(places + SPECTRAL_SHARE * spectra)

    @property
    def _in_place(self) -> sparse.csr_array:
        return sparse.csr_array(self._place_weights / self._mean_degrees[0])

    @property
    def _in_spectra(self) -> sparse.csr_array:
        return sparse.csr_array(self._spectral_graph.weights / self._mean_degrees[1])

    @cached_property
    def _mean_degrees(self) -> tuple[float, float]:
        """Mean degrees of the graph of places and of that of spectra."""
        n = len(self.pixels.places)
        return float(self._place_weights.sum()) / n, float(self._spectral_graph.weights.sum()) / n

    @cached_property
    def _tree(self) -> Any:
        return cKDTree(self.pixels.places)

    @cached_property
    def _pairs(self) -> tuple[Int[np.ndarray, " E"], Int[np.ndarray, " E"]]:
        """Each pixel and its neighbours in place."""
        n = len(self.pixels.places)
        k = min(N_PLACES, n - 1)
        found = self._tree.query(self.pixels.places, k + 1)[1]
        rows, columns = np.repeat(np.arange(n), k + 1), found.ravel()
        return rows[rows != columns], columns[rows != columns]

    @cached_property
    def _scales(self) -> Float[np.ndarray, " B"]:
        """Standard deviation of each band, 1 where it is constant."""
        deviation = self.pixels.spectra.std(axis=0)
        return np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def _contrast(self) -> float:
        """Median squared difference of neighbours in place, 1 if most are equal."""
        middle = float(np.median(self._differences(self.pixels.spectra, *self._pairs)))
        return middle if middle > 0 else 1.0

    @cached_property
    def _place_weights(self) -> sparse.csr_array:
        rows, columns = self._pairs
        weights = self._likeness(self.pixels.spectra, rows, columns)
        n = len(self.pixels.places)
        directed = sparse.csr_array((weights, (rows, columns)), shape=(n, n))
        return sparse.csr_array(directed.maximum(directed.T))

    def _likeness(
        self, spectra: Float[np.ndarray, "M B"], rows: np.ndarray, nodes: np.ndarray
    ) -> Float[np.ndarray, " E"]:
        """Return the weight of pixels and their neighbours in place, in (0, 1]."""
        squares = self._differences(spectra, rows, nodes)
        return np.exp(-squares / (CONTRAST * self._contrast))

    def _differences(
        self, spectra: Float[np.ndarray, "M B"], rows: np.ndarray, nodes: np.ndarray
    ) -> Float[np.ndarray, " E"]:
        """Return the squared differences of the spectra of pixels and nodes, band by band."""
        total = np.zeros(len(rows))
        for b, scale in enumerate(self._scales):
            own = self.pixels.spectra[:, b]
            total += ((spectra[rows, b] - own[nodes]) / scale) ** 2
        return total

    @cached_property
    def _directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre of the means, and the directions with the most variance beside that of noise.

        Noise is the difference of a pixel and the mean of its window, in the half of the pixels
        with the smallest ones, since the others are at the edges of fields.
        """
        spectra, means, scales = self.pixels.spectra, self.pixels.means, self._scales
        noise, centre = (spectra - means) / scales, means.mean(axis=0)
        squares = (noise**2).sum(axis=1)
        noise = noise[squares <= np.median(squares)]
        scaled = (means - centre) / scales
        floor = NOISE_FLOOR * np.eye(len(scales))
        of_noise = noise.T @ noise / len(noise) + floor
        _, vectors = eigh(scaled.T @ scaled / len(scaled), of_noise)
        return centre, vectors[:, ::-1][:, :N_DIRECTIONS] / scales[:, None]

    def _in_noise(self, means: Float[np.ndarray, "M B"]) -> Float[np.ndarray, "M r"]:
        """Return the components of means, in standard deviations of the noise."""
        centre, directions = self._directions
        return np.asarray((means - centre) @ directions)

    @cached_property
    def _spectral_graph(self) -> Graph:
        rows = self._in_noise(self.pixels.means)
        with held_warnings():  # places join what this graph does not
            return knn_graph(rows, min(N_SPECTRA, len(rows) - 1))


def pixel_graph(
    values: Float[np.ndarray, "B R C"], mask: Bool[np.ndarray, "R C"] | None = None
) -> Graph:
    """Join each pixel of a scene to its neighbours, and to those of the most similar spectra.

    The weight of two of 8 neighbours is ``exp(−d² / 2m)`` with the squared difference d² of their
    standardised spectra, and the median m of these. Edges to the 10 pixels of the most similar
    3 × 3 means have a tenth of the weight on average. Beside this graph are those of places and of
    spectra alone; `GraphClassifier` weighs the three by the labels. See docs/scenes.md.

    Parameters
    ----------
    values : array_like, shape (B, R, C)
        Bands, rows and columns, finite where the mask has data.
    mask : array_like of bool, shape (R, C), optional
        Which pixels have data; by default those that are finite in all bands.

    Returns
    -------
    Graph
        Its nodes are the pixels with data, row by row: those of ``values[:, mask].T``.

    Raises
    ------
    InvalidInput
        If shapes do not fit, fewer than two pixels have data, or one with data is not finite.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> scene = np.random.default_rng(0).normal(size=(3, 8, 9))
    >>> gq.graphs.pixel_graph(scene).n_nodes
    72
    """
    array = np.asarray(values)
    require(
        array.ndim == 3 and array.dtype.kind in "biuf",
        "values",
        f"shape {array.shape} of type {array.dtype}",
        "give numbers of shape (bands, rows, columns)",
    )
    known = np.isfinite(array).all(axis=0) if mask is None else np.asarray(mask, dtype=bool)
    require(
        known.shape == array.shape[1:],
        "mask",
        f"shape {known.shape} beside a scene of {array.shape[1:]}",
        "give one value a pixel",
    )
    require(bool(known.any()), "mask", "no pixel has data", "give at least 2")
    return PixelGraph(Pixels.of(array, known, known)).graph
