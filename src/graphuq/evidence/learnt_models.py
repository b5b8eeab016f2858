"""Posteriors under the models that were learnt from other data sets: their average, or one."""

import dataclasses
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from graphuq.evidence.learnt_mixture import learnt_mixture
from graphuq.graphs.inputs import MatrixLike
from graphuq.inference.model_average import likeliest_component, probabilities_of_components
from graphuq.likelihoods import Probit
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Matern, MaternMixture
from graphuq.spectrum import Spectrum, with_feature_columns, without_feature_columns

ENOUGH_A_CLASS = 5  # labels a class, on average, from which the likeliest model predicts better
# than hyperparameters of largest evidence, and features may tell more than the graph
# (docs/measurements/model_average.md)
LEAST_SHARE = 1e-4  # probability given 30 labels, from which components on features are kept


def has_enough_labels(codes: Int[np.ndarray, " J"]) -> bool:
    """Return whether there are labels enough to choose one of the models."""
    return len(codes) >= ENOUGH_A_CLASS * (int(codes.max()) + 1)


def average_of_models(
    spectrum: Spectrum,
    labelled: Int[np.ndarray, " J"],
    codes: Int[np.ndarray, " J"],
    weights: Float[np.ndarray, " J"] | None = None,
    features: MatrixLike | None = None,
    *,
    prune: bool = True,
) -> Posterior:
    """Return the posterior that averages over the mixture of `learnt_mixture`.

    From five labels a class on, functions of the features are part of the average, unless 30 labels
    leave them improbable.

    Parameters
    ----------
    spectrum : Spectrum
    labelled : numpy.ndarray of int, shape (J,)
        Labelled nodes.
    codes : numpy.ndarray of int, shape (J,)
        Their classes, 0 to K − 1, all of which occur.
    weights : numpy.ndarray, shape (J,), optional
        Weight of each label.
    features : array_like or sparse matrix, shape (N, d), optional
        Without, functions of the features have a part only if the spectrum has columns of them.
    prune : bool, default True
        Whether improbable functions of the features are left out.
    """
    if has_enough_labels(codes):
        if features is not None:
            spectrum = with_feature_columns(spectrum, features)
        if spectrum.n_feature_columns:
            average = _average(spectrum, labelled, codes, weights)
            prior: Any = average.prior
            if not prune:
                return average
            share = probabilities_of_components(average) @ np.array(prior.on_features)
            if share >= LEAST_SHARE:
                return average
    return _average(without_feature_columns(spectrum), labelled, codes, weights)


def _average(
    spectrum: Spectrum,
    labelled: Int[np.ndarray, " J"],
    codes: Int[np.ndarray, " J"],
    weights: Float[np.ndarray, " J"] | None,
) -> Posterior:
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

    Its prior is a `Matern` of unit variance; the scale of the component is in the noise. If the
    model is a function of the features, it is a `MaternMixture` of this component alone.

    Parameters
    ----------
    average : Posterior
        As `average_of_models` returns it.
    """
    mixture, likelihood = cast(Any, average.prior), cast(Any, average.likelihood)
    model = likeliest_component(average)
    noise_std = 1 / mixture.scale[model]
    likelihood = dataclasses.replace(likelihood, noise_std=noise_std)
    if any(mixture.on_features) and mixture.on_features[model]:
        alone = MaternMixture((1.0,), (1.0,), (1.0,), (0.0,), on_features=(1.0,))
        chosen = {"noise_std": noise_std}
        return dataclasses.replace(
            average, prior=alone, likelihood=likelihood, chosen_by_evidence=chosen
        )
    prior = Matern(
        tau=mixture.tau[model],
        alpha=mixture.alpha[model],
        include_constant=bool(mixture.with_constant[model]) or None,
    )
    names = ("tau", "alpha", "include_constant")
    return dataclasses.replace(
        average,
        spectrum=without_feature_columns(cast(Spectrum, average.spectrum)),
        prior=prior,
        likelihood=likelihood,
        chosen_by_evidence={name: getattr(prior, name) for name in names}
        | {"noise_std": noise_std},
    )
