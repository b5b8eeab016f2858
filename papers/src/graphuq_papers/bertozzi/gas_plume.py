"""A simulated gas plume, filmed in the long-wave infrared."""

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter

from graphuq.datasets import Dataset
from graphuq_papers.checks import generator, require, require_integer

FIRST_NM, LAST_NM = 7_830.0, 11_700.0  # first and last channel; 129 channels are 30 nm apart
# Absorption lines of the gas: centre in nm, width in nm, relative depth.
LINES = ((8_900.0, 130.0, 0.55), (10_300.0, 180.0, 1.0), (10_750.0, 90.0, 0.8))
THICKNESS = 0.35  # optical depth in the middle of the plume, at the strongest line
VISIBLE = 0.1  # thickness relative to the middle above which a pixel is classed as plume


def gas_plume(
    n_frames: int = 7,
    shape: tuple[int, int] = (128, 320),
    n_channels: int = 129,
    *,
    noise_std: float = 0.004,
    seed: int | np.random.Generator = 0,
) -> Dataset:
    """Simulate a hyperspectral video of a gas release, in place of one that is not public.

    The default size is that of Bertozzi et al. 2018, §5.1.4: 7 frames of 128 × 320 pixels with
    129 channels from 7,830 to 11,700 nm. Sky, hills and plain have black-body-like spectra that
    mix smoothly; the sun's share varies from pixel to pixel. From the second frame on, a plume
    rises from the plain, drifts with the wind and thins out towards its edge. Its gas absorbs
    at three lines (Beer–Lambert). Sensor noise is added last.

    Parameters
    ----------
    n_frames : int, default 7
        Number of frames, >= 2. The first shows no plume.
    shape : tuple of int, default (128, 320)
        Rows and columns of a frame, each >= 8.
    n_channels : int, default 129
        Number of channels, >= 3.
    noise_std : float, default 0.004
        Standard deviation >= 0 of the sensor noise; radiances are about 1.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    Dataset
        One row per pixel, frame by frame and row by row. Classes "background" and "plume"; the
        latter where the gas is more than a tenth as thick as in the middle of the plume.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    """
    n_rows, n_columns = shape
    require_integer("n_frames", n_frames, 2)
    require_integer("shape", min(shape), 8)
    require_integer("n_channels", n_channels, 3)
    require(0 <= noise_std < np.inf, "noise_std", f"{noise_std!r}", "use a number >= 0")
    rng = generator(seed)
    wavelength = np.linspace(FIRST_NM, LAST_NM, n_channels)
    absorption = np.zeros(n_channels)
    for center, width, depth in LINES:
        absorption += depth * np.exp(-((wavelength - center) ** 2) / (2 * width**2))
    scene = _background(wavelength, shape, rng)
    frames, thick = [], []
    for frame in range(n_frames):
        gas = _gas(frame / (n_frames - 1), shape, rng) if frame else np.zeros(shape)
        sun = 1 + 0.03 * rng.normal() + 0.02 * rng.normal(size=shape)
        transmitted = np.exp(-THICKNESS * gas[:, :, None] * absorption)
        image = sun[:, :, None] * scene * transmitted
        frames.append(image + noise_std * rng.normal(size=image.shape))
        thick.append(gas)
    features = np.concatenate([image.reshape(-1, n_channels) for image in frames])
    plume = np.concatenate([gas.ravel() for gas in thick]) > VISIBLE
    return Dataset(
        features=np.maximum(features, 1e-6),
        classes=np.where(plume, "plume", "background"),
        name=f"gas plume, {n_frames} frames of {n_rows} × {n_columns}",
        source="simulated by graphuq",
        feature_names=tuple(f"{value:.0f} nm" for value in wavelength),
        description="Simulated hyperspectral pixels, frame by frame and row by row; the columns "
        "are radiances at wavelengths in nm.",
    )


def _background(
    wavelength: Float[np.ndarray, " d"], shape: tuple[int, int], rng: np.random.Generator
) -> Float[np.ndarray, "h w d"]:
    """Simulate sky above hills above a plain, as smooth mixtures of three spectra."""
    n_rows, n_columns = shape
    row, column = np.meshgrid(np.arange(n_rows) / n_rows, np.arange(n_columns), indexing="ij")
    ridge = (
        0.4
        + 0.06 * np.sin(4 * np.pi * column / n_columns)
        + 0.03 * np.sin(14 * np.pi * column / n_columns + 1)
    )
    sky = 1 / (1 + np.exp((row - ridge) / 0.015))
    plain = 1 / (1 + np.exp(-(row - ridge - 0.25) / 0.04))
    share = np.stack([sky, (1 - sky) * (1 - plain), (1 - sky) * plain], axis=-1)
    x = (wavelength - FIRST_NM) / (LAST_NM - FIRST_NM)
    spectra = np.stack(
        [
            0.75 - 0.25 * x + 0.08 * np.sin(9 * x),  # sky: cold, with an ozone band
            0.95 + 0.10 * x - 0.30 * np.exp(-((x - 0.33) ** 2) / 0.006),  # hills: silicate
            1.00 + 0.05 * x - 0.12 * np.exp(-((x - 0.40) ** 2) / 0.02),  # plain
        ]
    )
    texture = gaussian_filter(rng.normal(size=shape), (2, 4))
    share[:, :, 1] *= 1 + 0.3 * texture / texture.std() * 0.3
    mixed: Float[np.ndarray, "h w d"] = share @ spectra
    return mixed


def _gas(time: float, shape: tuple[int, int], rng: np.random.Generator) -> Float[np.ndarray, "h w"]:
    """Simulate the thickness of the plume, 1 in its middle, at a time from 0 to 1."""
    n_rows, n_columns = shape
    row, column = np.meshgrid(
        np.arange(n_rows) / n_rows, np.arange(n_columns) / n_columns, indexing="ij"
    )
    source_row, source_column = 0.72, 0.2
    reach = 0.12 + 0.5 * time
    along = (column - source_column) / reach
    height = source_row - 0.35 * time**0.7 * np.clip(along, 0, None) ** 0.8
    width = 0.05 + 0.12 * np.clip(along, 0, None) * (0.4 + 0.6 * time)
    body = np.exp(-((row - height) ** 2) / (2 * width**2))
    ends = 1 / (1 + np.exp(-along / 0.05)) / (1 + np.exp((along - 1) / 0.08))
    eddies = gaussian_filter(rng.normal(size=shape), (n_rows / 24, n_columns / 40))
    gas = body * ends * np.exp(0.5 * eddies / eddies.std())
    gas = gas / gas.max()
    thin: Float[np.ndarray, "h w"] = np.where(gas > 0.01, gas, 0.0)
    return thin
