"""Frames of a moving object: each pixel shows the object, shows the rest, or is missing."""

import dataclasses
import os
import warnings
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int
from PIL import Image

from graphuq.cli import atomic_write
from graphuq.errors import InvalidInput, StorageError
from graphuq.graphs import Graph, grid_graph
from graphuq_papers.checks import generator, require, require_integer

HALF = 0.5  # brightness in [0, 1]; brighter pixels belong to the object


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Frames:
    """Video of an object: +1 where it is seen, −1 where it is not, 0 where a pixel is missing.

    Attributes
    ----------
    labels : numpy.ndarray of int, shape (T, H, W)
    truth : numpy.ndarray of bool, shape (T, H, W), or None
        True location of the object, if known.
    false : numpy.ndarray of bool, shape (T, H, W), or None
        Pixels labelled +1 that do not show the object.
    names : tuple of str
        Names of the frames; by default ``frame1`` and so on.
    """

    labels: Int[np.ndarray, "T H W"]
    truth: Bool[np.ndarray, "T H W"] | None = None
    false: Bool[np.ndarray, "T H W"] | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = np.shape(self.labels)
        require(len(shape) == 3, "labels", f"shape {shape}", "give frames, shape (T, H, W)")
        if not self.names:
            width = len(str(len(self.labels)))
            names = tuple(f"frame{t + 1:0{width}}" for t in range(len(self.labels)))
            object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        n_frames, height, width = self.labels.shape
        missing = f"{100 * (self.labels == 0).mean():.0f} % missing"
        return f"Frames({n_frames} frames of {height} × {width} pixels, {missing})"

    @property
    def known(self) -> Int[np.ndarray, " J"]:
        """Indices of the pixels that are not missing, which are the labelled nodes of `graph`."""
        return np.flatnonzero(self.labels)

    @property
    def signs(self) -> Float[np.ndarray, " J"]:
        """Labels, −1 or +1, of the pixels in `known`."""
        return self.labels.ravel()[self.known].astype(np.float64)

    def graph(self) -> Graph:
        """Return the grid graph of neighbouring pixels, in a frame and in successive frames."""
        return grid_graph(self.labels.shape)

    def save(self, folder: str | Path) -> None:
        """Write the frames as PNG files that `load_frames` reads, with missing pixels transparent.

        Raises
        ------
        StorageError
            If a file cannot be written.
        """
        for name, labels in zip(self.names, self.labels, strict=True):
            bright = np.where(labels > 0, 255, 0).astype(np.uint8)
            opaque = np.where(labels == 0, 0, 255).astype(np.uint8)
            write_picture(Path(folder) / f"{name}.png", np.stack([bright, opaque], axis=2))

    def maps(self, values: Float[np.ndarray, " N"]) -> Float[np.ndarray, "T H W"]:
        """Reshape one number per node into frames."""
        return values.reshape(self.labels.shape)


def moving_ball(
    n_frames: int = 9,
    shape: tuple[int, int] = (100, 100),
    missing: float = 0.1,
    corrupted: int | None = 4,
    seed: int | np.random.Generator = 0,
) -> Frames:
    """Simulate a slowly moving ball with missing pixels and a second ball in one frame.

    The scene follows Hartog & van Zanten 2018, §5.3, whose own frames are not published. The
    ball's radius is 0.15 of the frame. In each frame it moves 3 % to the right and 1.5 % down.

    Parameters
    ----------
    n_frames : int, default 9
    shape : tuple of int, default (100, 100)
        Rows and columns of a frame.
    missing : float, default 0.1
        Probability that a pixel is missing, in [0, 1).
    corrupted : int or None, default 4
        Index from 0 of the frame with a second ball; with None there is no second ball.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    Frames

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from graphuq_papers.films import moving_ball
    >>> frames = moving_ball()
    >>> frames
    Frames(9 frames of 100 × 100 pixels, 10 % missing)
    >>> frames.graph()
    Graph(90000 nodes, 258200 edges, 1 component)
    """
    require_integer("n_frames", n_frames, 2)
    require(min(shape) >= 10, "shape", f"{shape}", "use frames of 10 × 10 or more")
    require(0 <= missing < 1, "missing", f"{missing!r}", "use a share in [0, 1)")
    require(
        corrupted is None or 0 <= corrupted < n_frames,
        "corrupted",
        f"{corrupted} of {n_frames} frames",
        "use an index from 0, or None",
    )
    rng = generator(seed)
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    size = min(shape)

    def ball(row: float, column: float, radius: float) -> np.ndarray:
        offset = (rows - row * shape[0]) ** 2 + (columns - column * shape[1]) ** 2
        return np.asarray(offset <= (radius * size) ** 2)

    middle = np.arange(n_frames) - (n_frames - 1) / 2
    truth = np.stack([ball(0.48 + 0.015 * t, 0.46 + 0.03 * t, 0.15) for t in middle])
    false = np.zeros_like(truth)
    if corrupted is not None:
        false[corrupted] = ball(0.2, 0.8, 0.1) & ~truth[corrupted]
    labels = np.where(truth | false, 1, -1)
    labels[rng.uniform(size=labels.shape) < missing] = 0
    return Frames(labels, truth, false)


def load_frames(folder: str | Path, mask: str | Path | None = None) -> Frames:
    """Read a folder of PNG frames, in the order of their names.

    Parameters
    ----------
    folder : path
        Folder of pictures of one size. Pixels brighter than half belong to the object. Pixels
        more than half transparent are missing.
    mask : path, optional
        One picture for all frames, or a folder with one picture of the same name for each frame.
        Pixels that are darker than half in the mask are missing.

    Raises
    ------
    StorageError
        If there are fewer than two frames, or one cannot be read.
    InvalidInput
        If sizes differ, a mask is missing, or no pixel (or every pixel) belongs to the object.
    """
    paths = sorted(path for path in Path(folder).glob("*.png") if path.name[0] != ".")
    if len(paths) < 2:
        raise StorageError(f"'{folder}' holds {len(paths)} PNG frame(s); give two or more")
    pictures = [_read_picture(path) for path in paths]
    sizes = {bright.shape for bright, _ in pictures}
    require(
        len(sizes) == 1, "folder", f"frames of sizes {sorted(sizes)}", "give frames of one size"
    )
    labels = np.stack([np.where(bright > HALF, 1, -1) for bright, _ in pictures])
    seen = np.stack([opaque > HALF for _, opaque in pictures])
    if mask is not None:
        for t, path in enumerate(paths):
            mask_path = Path(mask) / path.name if os.path.isdir(mask) else Path(mask)
            if not os.path.exists(mask_path):
                raise InvalidInput("mask", f"there is no '{mask_path}'", "give one for each frame")
            bright, _ = _read_picture(mask_path)
            require(
                bright.shape == labels[t].shape,
                "mask",
                f"'{mask_path}' has {bright.shape} pixels beside {labels[t].shape}",
                "give masks of the frames' size",
            )
            seen[t] &= bright > HALF
    labels[~seen] = 0
    require(
        (labels > 0).any() and (labels < 0).any(),
        "folder",
        "the pixels that are not missing are all of one kind",
        "make the object brighter than half and the rest darker",
    )
    return Frames(labels, names=tuple(path.stem for path in paths))


def write_picture(path: Path, values: np.ndarray) -> None:
    """Write bytes, shape (H, W) or (H, W, 2) for brightness and opacity, as a PNG file."""
    with atomic_write(path) as temporary:
        Image.fromarray(values).save(temporary, format="png")


def _read_picture(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return brightness and opacity of a picture, in [0, 1]."""
    if not os.path.isfile(path):  # False, too, if the name is too long
        raise StorageError(f"'{path}' is not a file; give a PNG picture")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=["PNG"]) as picture:
                values = np.asarray(picture.convert("LA"), dtype=np.float64) / 255
    except Exception as error:  # readers raise errors of any type on a damaged file
        raise StorageError(
            f"'{path}' is not a readable picture ({error}); it may be empty, truncated or of "
            "another type"
        ) from None
    return values[..., 0], values[..., 1]
