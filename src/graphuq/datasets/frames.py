"""Object tracking: frames whose pixels show an object, or not, or are missing."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs import Graph, grid_graph
from graphuq.utils.files import atomic_write

HALF = 0.5  # brightness from which on a pixel is of the object


@dataclasses.dataclass(frozen=True, eq=False)
class Frames:
    """A film: +1 where the object is seen, −1 where it is not, 0 where a pixel is missing.

    Attributes
    ----------
    labels : numpy.ndarray of int, shape (T, H, W)
    truth : numpy.ndarray of bool, shape (T, H, W), or None
        Where the object is, if that is known.
    false : numpy.ndarray of bool, shape (T, H, W), or None
        Where something else was seen in its place.
    names : tuple of str
        Of the frames; by default ``frame1`` and so on.
    """

    labels: Int[np.ndarray, "T H W"]
    truth: Bool[np.ndarray, "T H W"] | None = None
    false: Bool[np.ndarray, "T H W"] | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            width = len(str(len(self.labels)))
            names = tuple(f"frame{t + 1:0{width}}" for t in range(len(self.labels)))
            object.__setattr__(self, "names", names)

    @property
    def known(self) -> Int[np.ndarray, " J"]:
        """Numbers of the pixels that are not missing: the labelled nodes of `graph`."""
        return np.flatnonzero(self.labels)

    @property
    def signs(self) -> Float[np.ndarray, " J"]:
        """Their labels."""
        return self.labels.ravel()[self.known].astype(np.float64)

    def graph(self) -> Graph:
        """Each pixel joined to its neighbours in its frame, and to itself in the next."""
        return grid_graph(self.labels.shape)

    def save(self, folder: str | Path) -> None:
        """Write the frames as pictures that `load_frames` reads, missing pixels transparent.

        Raises
        ------
        StorageError
            If they cannot be written.
        """
        for name, labels in zip(self.names, self.labels, strict=True):
            bright = np.where(labels > 0, 255, 0).astype(np.uint8)
            opaque = np.where(labels == 0, 0, 255).astype(np.uint8)
            write_picture(Path(folder) / f"{name}.png", np.stack([bright, opaque], axis=2))

    def maps(self, values: Float[np.ndarray, " N"]) -> Float[np.ndarray, "T H W"]:
        """A number for each node, as frames."""
        return values.reshape(self.labels.shape)


def moving_ball(
    n_frames: int = 9,
    shape: tuple[int, int] = (100, 100),
    missing: float = 0.1,
    corrupted: int | None = 4,
    seed: int | np.random.Generator = 0,
) -> Frames:
    """A ball that moves slowly, a tenth of the pixels missing, a second ball in one frame.

    The scene of Hartog & van Zanten 2018, §5.3, whose own frames are not published: a radius of
    0.15 of the frame, 3 % to the right and 1.5 % down a frame.

    Parameters
    ----------
    n_frames : int, default 9
    shape : tuple of int, default (100, 100)
        Rows and columns of a frame.
    missing : float, default 0.1
        Share of the pixels, at random, in [0, 1).
    corrupted : int or None, default 4
        Frame with a second ball, counted from 0; None: there is none.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    Frames

    Examples
    --------
    >>> import graphuq as gq
    >>> frames = gq.datasets.moving_ball()
    >>> frames.graph()
    Graph(90000 nodes, 258200 edges, 1 component)
    """
    require(n_frames >= 2, "n_frames", f"{n_frames}", "use 2 or more")
    require(min(shape) >= 10, "shape", f"{shape}", "use frames of 10 × 10 or more")
    require(0 <= missing < 1, "missing", f"{missing!r}", "use a share in [0, 1)")
    require(
        corrupted is None or 0 <= corrupted < n_frames,
        "corrupted",
        f"{corrupted} of {n_frames} frames",
        "name one that is there, from 0, or None",
    )
    rng = np.random.default_rng(seed)
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
        Pictures of one size; the object is what is brighter than half. A pixel of a picture with
        transparency is missing where it is more than half transparent.
    mask : path, optional
        One picture for all frames, or a folder with one for each under the same name: pixels are
        missing where it is darker than half.

    Raises
    ------
    StorageError
        If there are fewer than two frames, or one cannot be read.
    InvalidInput
        If sizes differ, a mask is missing, or no pixel (or every one) is of the object.
    """
    paths = sorted(Path(folder).glob("*.png"))
    if len(paths) < 2:
        raise StorageError(f"'{folder}' holds {len(paths)} PNG frame(s); two or more are needed")
    pictures = [_read(path) for path in paths]
    sizes = {bright.shape for bright, _ in pictures}
    require(
        len(sizes) == 1, "folder", f"frames of sizes {sorted(sizes)}", "give frames of one size"
    )
    labels = np.stack([np.where(bright > HALF, 1, -1) for bright, _ in pictures])
    seen = np.stack([opaque > HALF for _, opaque in pictures])
    if mask is not None:
        for t, path in enumerate(paths):
            of_frame = Path(mask) / path.name if Path(mask).is_dir() else Path(mask)
            if not of_frame.exists():
                raise InvalidInput("mask", f"there is no '{of_frame}'", "give one for each frame")
            bright, _ = _read(of_frame)
            require(
                bright.shape == labels[t].shape,
                "mask",
                f"'{of_frame}' has {bright.shape} pixels beside {labels[t].shape}",
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
    """Write a PNG of bytes, grey, or grey and opacity."""
    from PIL import Image  # comes with matplotlib

    with atomic_write(path) as temporary:
        Image.fromarray(values).save(temporary, format="png")


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Brightness and opacity of a picture, in [0, 1]."""
    from PIL import Image, UnidentifiedImageError  # comes with matplotlib

    try:
        with Image.open(path) as picture:
            values = np.asarray(picture.convert("LA"), dtype=np.float64) / 255
    except (OSError, UnidentifiedImageError) as error:
        raise StorageError(f"'{path}' is not a readable picture ({error})") from None
    return values[..., 0], values[..., 1]
