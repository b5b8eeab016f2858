"""Any method on a weighted set of posteriors: each component by itself, weighed by its evidence.

Draws of the components are joined in proportion to their weights, each in its own order. Gaussians
become a mixture of Gaussians.

The components of a probit are weighed before the method runs (`component_weights`). With another
likelihood of one field the approximation itself gives the evidence of each component.

Labels that someone chose class by class tell nothing about class shares (`class_shares`). The
weight of a field is then a function of its class shares. Draws are taken again in proportion to
it. A Gaussian is moved along the one direction in which the weights change most, so that mean and
variance in that direction are those of the weighted draws; this is exact if the weight is a
function of that direction alone.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr, log_softmax, logsumexp, softmax

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference.answers import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.checkpoint import checkpoint_of_part
from graphuq.inference.draws import Draws
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_weights import (
    N_APPROXIMATED,
    N_SAMPLED,
    ComponentWeights,
    component_weights,
)
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import seed_number

MIN_DRAWS = 100  # of each chain and component, of which few are used if its weight is small
MIN_WEIGHT = 1e-3  # share of the likeliest component, below which one is left out
MAX_TILT, MIN_TILT = 8_000, 400  # draws of all Gaussians, by which class shares are weighed, in
# proportion to their weights; least draws of one


class EachComponent:
    """A sampler or an approximation that serves each component of a `Mixture` in turn.

    `graphuq.infer` makes one of a method that takes a single posterior.

    Parameters
    ----------
    method : Sampler or Approximation
    """

    def __init__(self, method: Sampler | Approximation) -> None:
        self.method = method
        self.always_float64 = method.always_float64

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot serve the components, or None."""
        likelihood = posterior.likelihood
        approximates = isinstance(self.method, Approximation) and not likelihood.is_multiclass
        if likelihood.learnt or (likelihood.latent_noise_std is None and not approximates):
            other = "; use 'expectation-propagation'" if not likelihood.is_multiclass else ""
            return f"{self} needs a Probit of fixed noise and classes, not {likelihood}{other}"
        return self.method.refusal(posterior.component(0))

    def unused_arguments(self, given: Any) -> list[str]:
        """Return the arguments of `graphuq.infer` that have no effect."""
        more = [name for name in given if name == "start"]
        return [*dict.fromkeys([*self.method.unused_arguments(given), *more])]

    def check(self, posterior: Posterior, answer: Any) -> None:
        """Accept the answer: that of each component was checked."""

    def first_draws_are_quick(self, posterior: Posterior) -> bool:
        """Return False: there is no first result."""
        return False

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws | GaussianMixture:
        """Return draws in the coefficients of the columns, or a mixture of Gaussians.

        Raises
        ------
        IncompatibleParts
            If the method answers with a point: points have no average.
        """
        seed = seed_number(settings.rng)
        if posterior.likelihood.latent_noise_std is None:
            return self._by_own_evidence(posterior, settings)
        # Gaussians under the weight of class shares bring a correction of their own.
        by_class = ClassShares.of(posterior) is not None
        corrected = not (by_class and isinstance(self.method, Approximation))
        n_strata = N_APPROXIMATED if isinstance(self.method, Approximation) else N_SAMPLED
        found = component_weights(posterior, seed, corrected, n_strata)
        weights = np.exp(found.log_weights)
        own, answers = [posterior.component(n) for n in found.numbers.tolist()], []
        path = settings.checkpoint
        for k, (one, weight) in enumerate(zip(own, weights.tolist(), strict=True)):
            few = max(MIN_DRAWS, int(np.ceil(settings.n_samples * min(1.0, 2 * weight))))
            rule: Any = settings.stop
            changed = dataclasses.replace(
                settings,
                rng=seed + k,
                n_samples=min(few, settings.n_samples),
                stop=rule and rule.of(one),
                checkpoint=None if path is None else checkpoint_of_part(path, k),
            )
            start: Any = found.starts[k] if isinstance(self.method, Approximation) else None
            answer: Any = self.method.run(one, changed, start)
            self.method.check(one, answer)
            if isinstance(answer, Point):
                raise IncompatibleParts(self._no_average)
            answers.append(answer)
        if isinstance(answers[0], GaussianApproximation):
            return self._mixture(posterior, own, answers, found, seed)
        return self._joined(posterior, own, answers, found, settings, seed)

    def _by_own_evidence(self, posterior: Posterior, settings: RunSettings) -> GaussianMixture:
        """Return the Gaussians of all components with the weights that their evidence gives.

        A component without a fixed point is left out, unless none has one.
        """
        mixture: Any = posterior.prior
        log_prior, kept, answers = mixture.log_probabilities, [], []
        failure: Exception | None = None
        for number in np.flatnonzero(np.isfinite(log_prior)).tolist():
            one = posterior.component(number)
            try:
                answer: Any = self.method.run(one, settings)
            except InvalidInput as error:
                failure = error
                continue
            self.method.check(one, answer)
            if isinstance(answer, Point):
                raise IncompatibleParts(self._no_average)
            kept.append((number, one))
            answers.append(answer)
        if not kept:
            assert failure is not None
            raise failure
        numbers, own = map(list, zip(*kept, strict=True))
        log_weights = log_prior[numbers] + [answer.log_evidence for answer in answers]
        weights = softmax(log_weights)
        order = np.flatnonzero(weights >= MIN_WEIGHT * weights.max())
        found = ComponentWeights(
            np.array(numbers)[order],
            log_softmax(log_weights[order]),
            float(logsumexp(log_weights)),
            None,
            [],
        )
        own, answers = [own[m] for m in order], [answers[m] for m in order]
        return self._mixture(posterior, own, answers, found, seed_number(settings.rng))

    @property
    def _no_average(self) -> str:
        return (
            f"{self.method} gives a point, and points of several components have no average; use "
            "model='likeliest'"
        )

    def _mixture(
        self, posterior: Posterior, own: list[Posterior], answers: list[Any], found: Any, seed: int
    ) -> GaussianMixture:
        """Return the Gaussians with their weights, moved by the class shares."""
        log_weights = found.log_weights
        if found.shares is not None:
            counts = np.maximum(MIN_TILT, MAX_TILT * np.exp(log_weights)).astype(int).tolist()
            parts = [
                tilted(one, answer, found.shares, np.random.default_rng([seed, k]), n)
                for k, (one, answer, n) in enumerate(zip(own, answers, counts, strict=True))
            ]
            answers = [part.gaussian for part in parts]
            log_weights = log_weights + [part.log_weight for part in parts]
        return GaussianMixture(
            components=tuple(answers),
            numbers=found.numbers,
            weights=softmax(log_weights),
            fields=tuple(one.field for one in own),
            log_evidence=found.log_evidence,
            n_iterations=max(answer.n_iterations for answer in answers),
            seconds=sum(answer.seconds for answer in answers),
            description=f"{answers[0].description.split(',')[0]} of {len(answers)} components",
        )

    def _joined(
        self,
        posterior: Posterior,
        own: list[Posterior],
        answers: list[Draws],
        found: Any,
        settings: RunSettings,
        seed: int,
    ) -> Draws:
        """Return the draws of all components in one set of chains."""
        parts = [
            _in_coefficients(one, draws, found.shares, np.random.default_rng([seed, k]))
            for k, (one, draws) in enumerate(zip(own, answers, strict=True))
        ]
        weights = softmax(found.log_weights + [part.log_weight for part in parts])
        lengths = np.array([part.white.shape[1] for part in parts])
        n_samples = int(min(settings.n_samples, (lengths / weights).min()))
        counts = np.floor(weights * n_samples).astype(int)
        counts[np.argsort(counts - weights * n_samples)[: n_samples - counts.sum()]] += 1
        owner, places = _spread(counts, lengths)
        first, n_chains = answers[0], len(parts[0].white)

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            drawn = zip(owner.tolist(), places.tolist(), strict=True)
            return np.stack([values[m][:, s] for m, s in drawn], axis=1)

        component = np.tile(found.numbers[owner].astype(float), (n_chains, 1))
        return Draws(
            white=joined("white"),
            log_likelihood=joined("log_likelihood"),
            acceptance=joined("acceptance"),
            step_size=first.step_size,
            n_warmup=first.n_warmup,
            thin=first.thin,
            stopped_by=first.stopped_by,
            seconds=sum(draws.seconds for draws in answers),
            hyperparameters={"component": component},
            log_evidence=found.log_evidence,
        )

    def __repr__(self) -> str:
        return f"EachComponent({self.method!r})"


def _spread(
    counts: Int[np.ndarray, " m"], lengths: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Return component and place of each joined draw: evenly spread, each in its own order."""
    owner = np.repeat(np.arange(len(counts)), counts)
    within = np.concatenate([(np.arange(n) + 0.5) / n for n in counts if n])
    places = np.concatenate(
        [np.linspace(0, all_ - 1, n).astype(int) for all_, n in zip(lengths, counts, strict=True)]
    )
    order = np.argsort(within, kind="stable")
    return owner[order], places[order]


class _Part(NamedTuple):
    """Draws of one component in the coefficients of the columns, and the weight of its shares."""

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
    log_weight: float


def _in_coefficients(
    posterior: Posterior, draws: Draws, shares: ClassShares | None, rng: np.random.Generator
) -> _Part:
    """Return the draws of a component, taken again by the weight of their class shares."""
    flat = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
    shape = draws.n_chains, draws.n_samples
    white = coefficients_given(posterior, flat, rng).reshape(*shape, -1)
    if shares is None:
        return _Part(white, draws.log_likelihood, draws.acceptance, 0.0)
    logs = shares.log_weights(white.reshape(len(flat), -1)).reshape(shape)
    taken = np.stack([_by_weight(own) for own in logs])
    return _Part(
        np.take_along_axis(white, taken[:, :, None], axis=1),
        np.take_along_axis(draws.log_likelihood, taken, axis=1),
        draws.acceptance,
        float(logsumexp(logs) - np.log(logs.size)),
    )


def coefficients_given(
    posterior: Posterior, white: Float[np.ndarray, "S n"], rng: np.random.Generator
) -> Float[np.ndarray, "S m"]:
    """Return draws of the coefficients of all columns, and classes, given the field at the labels.

    ξ has the projection Vᵀ ξ on what the labels see, which is replaced by that of the draw.
    """
    field: Any = posterior.field
    one, several = field.one_class, posterior.likelihood.is_multiclass
    seen = np.asarray(one.seen(field.by_class(white) if several else white))  # (S, K, r) or (S, r)
    std, loads = np.sqrt(one.mode_variance), np.asarray(one.coefficient_map)
    prior = rng.normal(size=(*seen.shape[:-1], len(std)))
    turned = loads / np.where(std > 0, std, 1.0)[:, None]
    return np.asarray(std * prior + (seen - prior @ turned) @ loads.T).reshape(len(white), -1)


def _by_weight(log_weights: Float[np.ndarray, " S"]) -> Int[np.ndarray, " S"]:
    """Return places of as many draws, each as often as its weight says, in their order."""
    n_draws = len(log_weights)
    ends = np.cumsum(softmax(log_weights))
    return np.searchsorted(ends, (np.arange(n_draws) + 0.5) / n_draws).clip(max=n_draws - 1)


class _Tilted(NamedTuple):
    gaussian: GaussianApproximation
    log_weight: float


def tilted(
    posterior: Posterior,
    answer: GaussianApproximation,
    shares: ClassShares,
    rng: np.random.Generator,
    n_draws: int,
) -> _Tilted:
    """Return a Gaussian of two classes under the weight of class shares, and the mean weight.

    Draws of the Gaussian are weighted as draws of the posterior, because the shares weigh its tails
    most, which the Gaussian does not have right. The mean weight is relative to the evidence that
    the Gaussian claims.
    """
    field, noise = posterior.field, float(posterior.likelihood.latent_noise_std)
    mean, covariance = np.asarray(answer.white_mean), np.asarray(answer.white_covariance)
    root = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(len(mean)))
    z = rng.normal(size=(n_draws, len(mean)))
    white = mean + z @ root.T
    u = white @ np.asarray(field.one_class.factor).T
    logs = log_ndtr(posterior.labels * u / noise).sum(axis=1)
    logs += 0.5 * ((z**2).sum(axis=1) - (white**2).sum(axis=1)) + np.log(np.diag(root)).sum()
    logs += shares.log_weights(coefficients_given(posterior, white, rng)) - answer.log_evidence
    # The direction in which the log weight changes most, by regression on the coordinates.
    centred = white - white.mean(axis=0)
    slope = np.linalg.lstsq(centred, logs - logs.mean(), rcond=None)[0]
    along = covariance @ slope
    variance = float(slope @ along)
    log_weight = float(logsumexp(logs) - np.log(n_draws))
    if variance <= 0:
        return _Tilted(answer, log_weight)
    weights, t = softmax(logs), (white - mean) @ slope
    shift = float(weights @ t - t.mean())
    ratio = float(weights @ (t - weights @ t) ** 2 / t.var())
    gain, shrink = along * (shift / variance), (ratio - 1) / variance
    at = np.asarray(field.one_class.factor)
    labelled_gain = at @ gain
    labelled_along = at @ along
    changed = answer._replace(
        white_mean=mean + gain,
        white_covariance=covariance + shrink * np.outer(along, along),
        labelled_mean=answer.labelled_mean + labelled_gain,
        labelled_variance=np.maximum(answer.labelled_variance + shrink * labelled_along**2, 0.0),
        sites=None,
    )
    return _Tilted(changed, log_weight)
