"""One model: the component of an average that the labels leave most probable."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from graphuq.errors import IncompatibleParts, require
from graphuq.models.average import Average
from graphuq.models.base import Model, eigenpairs_of
from graphuq.models.evidence import Fixed
from graphuq.models.labels import Labels
from graphuq.models.mixture import Mixture
from graphuq.models.ordered import OrderedAverage
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Prior
from graphuq.spectrum import Laplacian, SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS


@dataclass(frozen=True, repr=False)
class Likeliest(Model):
    """The component of an average that the labels leave most probable.

    It is as quick as one model, and predicts better than hyperparameters of largest evidence from
    five labels a class on (docs/archive/model_average.md).

    Parameters
    ----------
    of : Model, default Average()
        Model whose posterior has a `Mixture` for its prior.

    Raises
    ------
    InvalidInput
        If ``of`` is no model.
    """

    of: Model = field(default_factory=Average)

    def __post_init__(self) -> None:
        require(
            isinstance(self.of, Model),
            "of",
            f"{self.of!r}",
            "give a model with a mixture, such as gq.models.Average()",
        )

    @property
    def replaces_average(self) -> bool:
        """Whether the average whose component it is is the default one."""
        return self in (Likeliest(), Likeliest(OrderedAverage()))

    @property
    def takes_order(self) -> bool:
        """Whether the order of classes is part of the average."""
        return self.of.takes_order

    def check(self, labels: Labels) -> None:
        """Raise `IncompatibleParts` for labels of which there is no average."""
        self.of.check(labels)

    @property
    def uses_blocks(self) -> bool:
        """Whether blocks of the basis beside its eigenpairs are part of the model."""
        return self.of.uses_blocks

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the posterior of one component.

        Its prior has unit variance; the scale of the component is in the noise.

        Raises
        ------
        IncompatibleParts
            If the model is no average.
        """
        average = self.of.posterior(basis, labels)
        mixture, likelihood = average.prior, average.likelihood
        if not isinstance(mixture, Mixture):
            raise IncompatibleParts(
                f"{self} needs a model with a mixture; use {self.of} itself, or Average()"
            )
        number = self.of.likeliest_number(average)
        terms = mixture.components[number]
        scale = terms[0].scale
        relative = tuple(dataclasses.replace(term, scale=term.scale / scale) for term in terms)
        scaled: Any = likelihood.of_component(number).rescaled(1 / scale)
        prior: Prior = Mixture((relative,))
        chosen: dict[str, Any] = {"noise_std": scaled.noise_std}
        own: Any = average.spectrum
        if len(terms) == 1 and terms[0].block == EIGENPAIRS:
            prior, own = terms[0].prior, eigenpairs_of(basis)
            names = (one.name for one in dataclasses.fields(prior))
            numbers = {name: getattr(prior, name) for name in names if name != "truncation"}
            chosen = numbers | chosen
        return dataclasses.replace(
            average,
            spectrum=own,
            prior=prior,
            likelihood=scaled,
            chosen_by_evidence=chosen,
            label_design=average.label_design if likelihood.is_multiclass else "random",
            sharpness=1.0,  # that is for averages
        )

    def used(self, posterior: Posterior) -> Model:
        """Return the component as a prior and a likelihood, if it is on the graph."""
        if posterior.prior.is_mixture:
            return self
        return Fixed(posterior.prior, posterior.likelihood)


def likeliest_of(model: Model) -> Model:
    """Return the model of the likeliest component of an average."""
    return Likeliest(model)
