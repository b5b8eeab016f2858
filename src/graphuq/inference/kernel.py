"""A Markov kernel as a sampler: chains in suitable coordinates, draws in the posterior's."""

import dataclasses
from typing import Any, ClassVar, cast

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Sampler
from graphuq.inference.chains import run_chains
from graphuq.inference.coordinates import sampling_coordinates
from graphuq.inference.draws import Draws
from graphuq.inference.settings import RunSettings
from graphuq.inference.transitions import TransitionKernel
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import check_fields, is_number


class Kernel(TransitionKernel, Sampler):
    """A sampler that is given by one step of its chains.

    A subclass defines `step` and has the fields ``step_size``, ``target_acceptance`` and
    ``reference``. Starting points, many chains, adaptation, stopping and checkpoints are
    inherited.

    Attributes
    ----------
    default_thin : int, default 20
        Steps per kept draw.
    """

    default_thin: ClassVar[int] = 20

    def __check_init__(self) -> None:
        check_fields(self)
        target = self.target_acceptance
        remedy = "use a probability in (0, 1)"
        require(not is_number(target) or 0 < target < 1, "target_acceptance", f"{target!r}", remedy)

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws from the posterior; see `Sampler.run` and `run_chains`."""
        settings = settings.with_defaults(
            self.n_chains(posterior), self.default_warmup, self.default_thin
        )
        target, to_posterior = sampling_coordinates(posterior, self, reference)
        kernel: Kernel = dataclasses.replace(cast(Any, self), reference=None)
        return to_posterior(
            run_chains(target, kernel, **settings.in_coordinates(to_posterior).arguments())
        )
