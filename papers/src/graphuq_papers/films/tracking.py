"""Object tracking: where an object is in each frame of a film, with probabilities."""

import warnings
from pathlib import Path

import numpy as np

from graphuq import (
    Converged,
    CumulativeMean,
    Posterior,
    Result,
    infer,
    laplacian_spectrum,
)
from graphuq.errors import TruncationWarning
from graphuq.likelihoods import Probit
from graphuq.priors import Prior, RandomSeries
from graphuq_papers.films.frames import Frames

CONVERGED = Converged(label_mcse=None)


def track(
    frames: Frames,
    *,
    n_eigenpairs: int = 300,
    prior: Prior | None = None,
    n_samples: int = 4000,
    n_chains: int = 4,
    n_warmup: int = 1000,
    stop: Converged | CumulativeMean | None = CONVERGED,
    seed: int | np.random.Generator = 0,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Result:
    """Infer the probability that each pixel of each frame belongs to the object.

    Pixels are nodes. Each is joined to its neighbours in the frame and to itself in the next
    frame; pixels that are not missing have labels (Hartog & van Zanten 2018, §5.3). No N × ℓ
    matrix is kept.

    Parameters
    ----------
    frames : Frames
        Read from a folder of pictures by `load_frames`.
    n_eigenpairs : int, default 300
        ℓ, the number of smoothest modes of the film, which sets the finest detail. A shape that
        looks like the object in one frame only is ignored if ℓ modes cannot draw it.
    prior : Prior, optional
        By default ``RandomSeries()``.
    n_samples, n_chains, n_warmup, stop, seed, progress, checkpoint
        As in `graphuq.infer`. The defaults are at most 4,000 draws of 4 chains, after 1,000 steps
        of warm-up: the mass matrix of 300 modes is estimated from some hundreds of draws.

    Returns
    -------
    Result
        With T·H·W nodes; ``frames.maps(soft_label_mean(result))`` are the probabilities as
        frames.

    Raises
    ------
    InvalidInput, IncompatibleParts, StorageError
        As `graphuq.laplacian_spectrum`, `graphuq.Posterior` and `graphuq.infer`.

    Examples
    --------
    >>> import warnings
    >>> import graphuq as gq
    >>> from graphuq_papers.films import moving_ball, track
    >>> frames = moving_ball(3, (20, 20), corrupted=None)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # too few draws
    ...     result = track(frames, n_eigenpairs=30, n_samples=50, n_chains=2, n_warmup=100)
    >>> located = frames.maps(gq.results.soft_label_mean(result)) > 0.5
    >>> bool((located == frames.truth).mean() > 0.9)
    True
    """
    spectrum = laplacian_spectrum(frames.graph(), "unnormalized", n_eigenpairs)
    posterior = Posterior(
        spectrum,
        RandomSeries() if prior is None else prior,
        Probit(1.0),  # fixes the unit, since the scale of the field is learnt
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
            rng=seed,
            progress=progress,
            checkpoint=checkpoint,
        )
