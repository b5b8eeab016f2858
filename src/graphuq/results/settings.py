"""The settings that made a result, as plain data."""

from typing import Any

import numpy as np

from graphuq.inference import Approximation, EachComponent, Sampler
from graphuq.posterior.posterior import Posterior
from graphuq.results.storage import version


def run_settings(
    posterior: Posterior,
    method: Sampler | Approximation | EachComponent,
    rng: int | np.random.Generator,
    precision: str,
) -> dict[str, Any]:
    """Return the settings of graph, spectrum, model and run, and the version of graphuq."""
    return {
        **posterior.spectrum.settings,
        "prior": repr(posterior.prior),
        "likelihood": repr(posterior.likelihood),
        "n_labelled": len(posterior.labelled),
        "inference": repr(method),
        "seed": rng if isinstance(rng, int) else "generator",
        "precision": precision,
        "graphuq_version": version(),
    }
