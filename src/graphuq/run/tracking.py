"""Object tracking: where an object is in each frame of a film, and how sure that is."""

import warnings
from pathlib import Path

import numpy as np

from graphuq.datasets import Frames
from graphuq.errors import TruncationWarning
from graphuq.likelihoods import Probit
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Prior, RandomSeries
from graphuq.results.result import Result
from graphuq.run.infer import Stop, infer
from graphuq.run.stopping import Converged
from graphuq.spectrum import laplacian_spectrum
from graphuq.utils.progress import Progress

CONVERGED = Converged(label_mcse=None)


def track(
    frames: Frames,
    *,
    n_eigenpairs: int = 300,
    prior: Prior | None = None,
    n_samples: int = 4000,
    n_chains: int = 4,
    n_warmup: int = 1000,
    stop: Stop | None = CONVERGED,
    seed: int | np.random.Generator = 0,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
) -> Result:
    """Infer the probability that each pixel of each frame is of the object.

    Pixels are nodes, joined to their neighbours in the frame and to themselves in the next; those
    that are not missing have labels (Hartog & van Zanten 2018, §5.3). No N × ℓ matrix is kept.

    Parameters
    ----------
    frames : Frames
        `datasets.load_frames` reads a folder of pictures.
    n_eigenpairs : int, default 300
        ℓ, the smoothest modes of the film: the finest detail that is believed. What looks like the
        object for one frame is ignored if fewer modes than it would take to draw it are kept.
    prior : Prior, optional
        By default ``RandomSeries()``.
    n_samples, n_chains, n_warmup, stop, seed, progress, checkpoint
        As in `infer`. At most 4,000 draws of 4 chains by default, after 1,000 steps of warm-up: the
        metric of 300 modes wants some hundreds of draws.

    Returns
    -------
    Result
        Of T·H·W nodes; ``frames.maps(result.soft_label_mean)`` are the probabilities as frames.

    Raises
    ------
    InvalidInput, IncompatibleParts, StorageError
        As `laplacian_spectrum`, `Posterior` and `infer`.

    Examples
    --------
    >>> import warnings, graphuq as gq
    >>> frames = gq.datasets.moving_ball(3, (20, 20), corrupted=None)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # too few draws
    ...     result = gq.track(frames, n_eigenpairs=30, n_samples=50, n_chains=2, n_warmup=100)
    >>> located = frames.maps(result.soft_label_mean) > 0.5
    >>> bool((located == frames.truth).mean() > 0.9)
    True
    """
    spectrum = laplacian_spectrum(frames.graph(), "unnormalized", n_eigenpairs)
    posterior = Posterior(
        spectrum,
        RandomSeries() if prior is None else prior,
        Probit(1.0),  # a unit: the field's scale is learnt
        frames.known,
        frames.signs,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # n_eigenpairs is the user's choice here
        return infer(
            posterior,
            n_samples=n_samples,
            n_chains=n_chains,
            n_warmup=n_warmup,
            stop=stop,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
        )
