"""Models with one prior and one likelihood: given, or chosen by the evidence."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphuq.distributions import DiscreteUniform
from graphuq.errors import IncompatibleParts, InvalidInput, NotConvergedWarning, require
from graphuq.evidence.maximize import maximize_evidence
from graphuq.likelihoods import (
    AtomicNoise,
    GaussianNoise,
    GinzburgLandau,
    LevelSet,
    Likelihood,
    Logistic,
    NoiseFree,
    Probit,
    Softmax,
    SoftProbit,
)
from graphuq.models.base import Model, eigenpairs_of
from graphuq.models.labels import Labels
from graphuq.posterior.given_labels import check_weights
from graphuq.posterior.posterior import Posterior
from graphuq.priors import (
    Diffusion,
    InverseCosine,
    InverseLaplacian,
    Matern,
    Prior,
    RandomWalk,
    RegularizedLaplacian,
)
from graphuq.run.words import part_from
from graphuq.spectrum import Laplacian, SpectralBasis
from graphuq.utils.user_warnings import warn_user

AUTO = "auto"
SOFT_NOISE = 0.5  # start of the search by evidence; sites of soft labels rarely converge at 0.1
LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    AUTO: Probit,
    "probit": Probit,
    "softmax": Softmax,
    "level-set": LevelSet,
    "atomic-noise": AtomicNoise,
    "noise-free": NoiseFree,
    "ginzburg-landau": GinzburgLandau,
    "logistic": Logistic,
    "gaussian": GaussianNoise,
}
PRIORS: dict[str, Callable[[], Prior]] = {
    AUTO: lambda: Matern(tau=0.25, alpha=4.0),
    "matern": Matern,
    "inverse-laplacian": InverseLaplacian,
    "regularized-laplacian": RegularizedLaplacian,
    "diffusion": Diffusion,
    "random-walk": RandomWalk,
    "inverse-cosine": InverseCosine,
}


def prior_of(prior: str | Prior) -> Prior:
    """Return the prior of a name, or the given prior."""
    found: Prior = part_from(prior, PRIORS, Prior, "prior")
    return found


def likelihood_of(
    likelihood: str | Likelihood, n_classes: int | None = 2, max_classes: int | None = None
) -> Any:
    """Return the likelihood of a name, or the given one, for a number of classes, if it is known.

    With ``max_classes``, the number of classes is learnt.
    """
    found = part_from(likelihood, LIKELIHOODS, Likelihood, "likelihood")
    if n_classes is None:
        return found
    count: Any = n_classes
    require(
        max_classes is None or max_classes >= n_classes,
        "max_classes",
        f"{max_classes} with {n_classes} labelled classes",
        f"use {n_classes} or more, or leave it out",
    )
    if max_classes is not None and max_classes > n_classes:
        count = DiscreteUniform(n_classes, max_classes)
    if "n_classes" in {field.name for field in dataclasses.fields(found)}:
        return dataclasses.replace(found, n_classes=count)
    own = getattr(found, "n_classes", 2)
    require(
        count == own,
        "likelihood",
        f"{found} is for {'two' if own == 2 else own} classes, not {count}",
        "use softmax, probit, level-set or noise-free",
    )
    return found


@dataclass(frozen=True, repr=False)
class LargestEvidence(Model):
    """One prior and one likelihood, whose numbers have the largest evidence where "auto".

    Parameters
    ----------
    prior : str or Prior, default "auto"
        Prior of the field. "auto": a `Matern`, of which the evidence chooses τ, α and whether there
        is a constant. The names "matern", "inverse-laplacian", "regularized-laplacian",
        "diffusion", "random-walk" and "inverse-cosine" stand for a prior with its defaults. Also
        text such as ``"Matern(tau=LogUniform(0.02, 3))"``, whose τ is sampled.
    likelihood : str or Likelihood, default "auto"
        Likelihood of the labels. "auto": a `Probit`, of which the evidence chooses the noise γ. The
        number of classes is that of the labels. Names are "probit", "softmax", "logistic",
        "gaussian", "level-set", "atomic-noise", "noise-free" and "ginzburg-landau". Also text such
        as ``"Probit(noise_std=0.2)"``.
    truncation : {"auto"}, optional
        "auto": the evidence chooses how many of the eigenpairs have a part. By default all have.

    A prior with a hyperparameter that is a distribution is sampled, and the evidence chooses
    nothing: the likelihood "auto" is then ``Probit()``.

    Raises
    ------
    InvalidInput
        If a name is unknown, or ``truncation="auto"`` is given beside a prior that is sampled.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.models.LargestEvidence(likelihood=gq.likelihoods.Probit(0.1)).chosen
    ['tau', 'alpha', 'include_constant']
    """

    prior: Any = AUTO
    likelihood: Any = AUTO
    truncation: Any = None

    def __post_init__(self) -> None:
        prior: Prior = prior_of(self.prior)
        likelihood_of(self.likelihood, None)
        require(
            self.truncation is None or not prior.learnt,
            "truncation",
            f"{self.truncation!r} beside {prior}, which is sampled",
            "give the prior truncation=DiscreteUniform(2, 50), to sample it too",
        )
        require(
            self.truncation is None or _is_auto(self.truncation),
            "truncation",
            f"{self.truncation!r}",
            "use 'auto' or None; a number belongs to the prior",
        )

    @property
    def replaces_average(self) -> bool:
        """Whether prior and likelihood are the default ones."""
        return self == LargestEvidence()

    @property
    def chosen(self) -> list[str]:
        """Names of the hyperparameters that the evidence chooses."""
        of_prior = ["tau", "alpha", "include_constant"] if _is_auto(self.prior) else []
        of_likelihood = ["noise_std"] if _is_auto(self.likelihood) else []
        return of_prior + of_likelihood + ([] if self.truncation is None else ["truncation"])

    @property
    def needs_eigenpairs(self) -> bool:
        """Whether a `Laplacian` is not enough: it is for a prior with a sparse precision."""
        prior = prior_of(self.prior)
        return not prior.has_sparse_precision or bool(prior.learnt)

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the posterior of one prior; see `Model.posterior`.

        Warns
        -----
        NotConvergedWarning
            If the evidence could not choose, and the start of the search is kept.
        """
        likelihood = self._likelihood_for(labels)
        posterior = Posterior(
            eigenpairs_of(basis),
            prior_of(self.prior),
            likelihood,
            labels.nodes,
            labels.values(likelihood.has_codes),
            label_weights=labels.weights,
        )
        names = self.chosen
        if names and not posterior.learnt:
            try:
                posterior = maximize_evidence(posterior, names).posterior
            except (InvalidInput, IncompatibleParts) as error:
                warn_user(
                    f"the evidence could not choose {', '.join(names)} ({error}); "
                    f"{posterior.prior} and {posterior.likelihood} are kept",
                    NotConvergedWarning,
                )
        if not labels.has_unseen_classes:
            return posterior
        likelihood = likelihood_of(posterior.likelihood, labels.n_classes, labels.max_classes)
        values = labels.codes if likelihood.has_codes else posterior.labels
        return dataclasses.replace(posterior, likelihood=likelihood, labels=values)

    @property
    def takes_order(self) -> bool:
        """Whether the order of classes is part of the model."""
        return bool(likelihood_of(self.likelihood, None).is_ordered)

    def check(self, labels: Labels) -> None:
        """Raise if the likelihood is not made for these labels or their weights."""
        if self.takes_order and not labels.ordered:
            raise IncompatibleParts(
                f"{self} needs the order of the classes: set ordered=True, or a list of classes"
            )
        check_weights(labels.weights, len(labels.codes), self._likelihood_for(labels))

    def used(self, posterior: Posterior) -> Model:
        """Return the prior and the likelihood with the numbers that were chosen."""
        return Fixed(posterior.prior, posterior.likelihood.unshifted) if self.chosen else self

    def _likelihood_for(self, labels: Labels) -> Any:
        """Return the likelihood for the number of classes, or the probit of soft labels."""
        if labels.distributions is None:
            return likelihood_of(self.likelihood, labels.n_classes)
        if labels.has_unseen_classes:
            raise IncompatibleParts("soft labels name all classes; leave max_classes out")
        if _is_auto(self.likelihood):
            return SoftProbit(SOFT_NOISE, labels.distributions, random_labels=True)
        found = likelihood_of(self.likelihood, labels.n_classes)
        require(
            isinstance(found, Probit),
            "likelihood",
            f"{found} beside soft labels",
            "use 'auto' or a Probit: the noise of other likelihoods has no such mixture here",
        )
        return SoftProbit(found.noise_std, labels.distributions, found.random_labels)


@dataclass(frozen=True, repr=False)
class Fixed(LargestEvidence):
    """One prior and one likelihood, as they are given.

    Parameters
    ----------
    prior : str or Prior, default "matern"
        A prior, or the name of one with its defaults.
    likelihood : str or Likelihood, default "probit"
        The number of classes is that of the labels.

    Raises
    ------
    InvalidInput
        If a name is unknown, or "auto".

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.models.Fixed(gq.priors.Matern(0.3), gq.likelihoods.Probit(0.1)).chosen
    []
    """

    prior: Any = "matern"
    likelihood: Any = "probit"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prior", "likelihood"):
            require(
                not _is_auto(getattr(self, name)),
                name,
                "'auto' of a fixed model",
                "use LargestEvidence(), which chooses numbers by the labels",
            )


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == AUTO
