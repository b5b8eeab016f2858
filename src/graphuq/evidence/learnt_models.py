"""Posteriors under the models that were learnt from other data sets: their average, or one."""

import dataclasses
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from graphuq.evidence.learnt_mixture import learnt_mixture
from graphuq.inference.model_average import likeliest_component
from graphuq.likelihoods import Probit
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Matern
from graphuq.spectrum import Spectrum

ENOUGH_A_CLASS = 5  # labels a class, on average, from which the likeliest model predicts better
# than hyperparameters of largest evidence (docs/measurements/model_average.md)


def has_enough_labels(codes: Int[np.ndarray, " J"]) -> bool:
    """Return whether there are labels enough to choose one of the models."""
    return len(codes) >= ENOUGH_A_CLASS * (int(codes.max()) + 1)


def average_of_models(
    spectrum: Spectrum,
    labelled: Int[np.ndarray, " J"],
    codes: Int[np.ndarray, " J"],
    weights: Float[np.ndarray, " J"] | None = None,
) -> Posterior:
    """Return the posterior that averages over the mixture of `learnt_mixture`.

    Parameters
    ----------
    spectrum : Spectrum
    labelled : numpy.ndarray of int, shape (J,)
        Labelled nodes.
    codes : numpy.ndarray of int, shape (J,)
        Their classes, 0 to K − 1, all of which occur.
    weights : numpy.ndarray, shape (J,), optional
        Weight of each label.
    """
    n_classes = int(codes.max()) + 1
    return Posterior(
        spectrum,
        learnt_mixture(spectrum, n_classes, len(codes)),
        Probit(1.0, n_classes, random_labels=True),
        labelled,
        codes if n_classes > 2 else 2 * codes - 1,
        label_weights=weights,
    )


def likeliest_model(average: Posterior) -> Posterior:
    """Return the posterior of the model that the labels leave most probable.

    Its prior is a `Matern` of unit variance; the scale of the component is in the noise.

    Parameters
    ----------
    average : Posterior
        As `average_of_models` returns it.
    """
    mixture, likelihood = cast(Any, average.prior), cast(Any, average.likelihood)
    model = likeliest_component(average)
    prior = Matern(
        tau=mixture.tau[model],
        alpha=mixture.alpha[model],
        include_constant=bool(mixture.with_constant[model]) or None,
    )
    noise_std = 1 / mixture.scale[model]
    names = ("tau", "alpha", "include_constant")
    return dataclasses.replace(
        average,
        prior=prior,
        likelihood=dataclasses.replace(likelihood, noise_std=noise_std),
        chosen_by_evidence={name: getattr(prior, name) for name in names}
        | {"noise_std": noise_std},
    )
