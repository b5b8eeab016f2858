"""Gibbs sampling of a probit series whose length is drawn too: reversible jump."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from graphuq.distributions import is_learnt
from graphuq.errors import IncompatibleParts, require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.draws import BLOCK, Draws, StopRule
from graphuq.inference.driver import Block, drive
from graphuq.inference.reversible_jump.gibbs import FORMS, WALKS, GibbsUpdates, Kept, SeriesState
from graphuq.inference.reversible_jump.hmc import JUMPS, Adaptation, HMCUpdates
from graphuq.inference.settings import RunSettings, check_run
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.random_series import ProbitSeries
from graphuq.utils.checks import check_fields
from graphuq.utils.progress import Progress

FIXED_SCALE_STEPS = 50  # first steps of warm-up, in which c is fixed while k and g adapt


class ReversibleJump(Sampler):
    r"""Gibbs sampler of noisy labels z, length k with coefficients g, and scale c.

    ``z | f`` is a normal, truncated at zero for a labelled node (Albert & Chib 1993). Given z
    the coefficients are independent. So k is drawn with g integrated out, and a jump between
    dimensions compares values of ``p(z | k, c)`` (Hartog & van Zanten 2018, Algorithm 1). The
    ratio that the paper prints is corrected: the statistics ``zᵀq_i`` enter squared. Then g is
    drawn, and c, whose conditional is conjugate. g is drawn even if k stays; the paper keeps it
    then, which has the same invariant distribution and mixes worse. The paper's own moves are
    ``ReversibleJump(proposal="binomial", form="plain", interweave=False, jump=False,
    whitened=False)``.

    On good graphs, and for frames of a film, the labels determine the coefficients far less than
    z does. Then k hardly moves given z. In this case each step begins with moves of all
    coefficients with z integrated out (`HMCUpdates`).

    Parameters
    ----------
    proposal : {"window", "binomial", "uniform", "triangular"}, default "window"
        Proposal of k. The last three are random walks by up to ``reach`` steps; the paper's is
        ``"binomial"``. ``"window"`` draws k from its exact conditional distribution on ``reach +
        1`` neighbouring values, in a window placed at random about k; it is always accepted.
    reach : int, optional
        By default 2 for the random walks and 32 for the window.
    form : {"auto", "marginal", "reduced", "plain"}, default "auto"
        ``"plain"`` draws z at every node, as the paper does, at a cost of N k. ``"reduced"``
        draws the sum that unlabelled nodes add to ``Qᵀz``, ``N(M g, M)`` with ``M = I −
        Q_LᵀQ_L`` (docs/theory/learnt.md), at a cost of J k and k²; the distribution is the same.
        ``"marginal"`` draws z at the labelled nodes alone, and then its scale given its direction
        (Liu & Wu 1999). It costs J k and k³, and mixes best if few nodes have labels. The
        default is marginal if fewer than half of the nodes have labels, else reduced. It is
        plain with more than 4,000 eigenpairs, and on grids, where products are fast transforms.
    interweave : bool, default True
        Whether c is drawn a second time with the whole field scaled with it and z integrated out
        (Yu & Meng 2011). The paper's conjugate draw alone changes c by a relative 1/√k.
    jump : bool, default True
        Whether each step adds or drops up to 256 modes together, with z integrated out (Green
        1995). New coefficients are drawn from normals fitted to the labels. Given z, which
        determines every coefficient, k hardly moves.
    whitened : bool, optional
        Whether each step begins with a Hamiltonian trajectory of the coefficients and log c. It
        is followed by jumps of k that move all of them; z is integrated out. By default it does
        if the mean curvature of the labels' log likelihood, estimated in warm-up, is below 0.2.
        The curvature of z is 1.
    """

    proposal: str = "window"
    reach: int | None = None
    form: str = "auto"
    interweave: bool = True
    jump: bool = True
    whitened: bool | None = None
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    default_warmup: ClassVar[int] = 500
    default_chains: ClassVar[int | None] = 8  # partly one after the other in NumPy
    always_float64: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_fields(self)
        known = ("window", *WALKS)
        require(
            self.proposal in known,
            "proposal",
            f"{self.proposal!r} is unknown",
            f"use one of {', '.join(known)}",
        )
        require(self.reach is None or self.reach >= 1, "reach", f"{self.reach}", "use 1 or more")
        require(
            self.form in ("auto", *FORMS),
            "form",
            f"{self.form!r} is unknown",
            f"use one of auto, {', '.join(FORMS)}",
        )
        require(self.reference is None, "reference", f"{self.reference}", "leave it out")

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why this is not a random series that the method samples, or None."""
        try:
            return None if posterior.series.n_modes else "no eigenvector has variance"
        except IncompatibleParts as error:
            return str(error)

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return coefficients of the eigenvectors and hyperparameters; see `Sampler.run`."""
        settings = settings.with_defaults(self.n_chains(posterior), self.default_warmup, 1)
        return self.sample(posterior.series, **settings.arguments())

    def sample(
        self,
        target: ProbitSeries,
        *,
        n_samples: int,
        n_chains: int,
        n_warmup: int,
        thin: int,
        rng: int | np.random.Generator,
        precision: str = "float64",
        stop: StopRule | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Draws:
        """Run chains side by side on a `ProbitSeries`, in float64.

        Arguments and errors are those of `chains.run_chains`. The coefficients of the
        eigenvectors in u are kept.
        """
        n_warmup, seed = check_run(
            target.n_modes, n_samples, n_chains, n_warmup, thin, rng, precision, apart=thin
        )
        apart = BLOCK * thin
        moves = GibbsUpdates(
            target, self.proposal, self.reach, self.form, self.interweave, self.jump
        )

        whitened = HMCUpdates(target, moves.rows, moves.noisy_nodes)

        def uses(tuning: Adaptation) -> bool:
            return whitened.pays(tuning) if self.whitened is None else self.whitened

        def start() -> tuple[SeriesState, Adaptation]:
            rng = np.random.default_rng([seed % 2**63, 0])  # seeds may be negative
            return moves.start(rng, n_chains), whitened.start()

        def advance(n_steps: int, position: tuple[SeriesState, Adaptation]) -> Block:
            state, tuning = position
            rng = np.random.default_rng([seed % 2**63, n_steps + 1])
            kept, acceptance = [], np.zeros(n_chains)
            for step in range(apart):
                begins = n_steps + step < min(FIXED_SCALE_STEPS, n_warmup)
                if used := uses(tuning):
                    state, of_trajectory = whitened.trajectory(
                        rng, state, tuning, holds_scale=begins
                    )
                    for _ in range(JUMPS if moves.moves_length else 0):
                        state = whitened.jump(rng, state, tuning, moves.log_prior)
                state, accepted = moves.step(rng, state, holds_scale=begins)
                accepted = of_trajectory if used else accepted
                if n_steps < n_warmup and self.whitened is not False:
                    tuning = whitened.adapted(rng, state, tuning, accepted if used else None)
                acceptance += accepted / thin
                if (step + 1) % thin == 0:
                    kept.append(moves.kept(state, acceptance))
                    acceptance = np.zeros(n_chains)
            found = Kept(*(np.stack(leaf, axis=1) for leaf in zip(*kept, strict=True)))
            return Block((state, tuning), found, apart, thin)

        def collect(position: tuple[SeriesState, Adaptation], kept: Kept) -> Draws:
            _, tuning = position
            learnt = {"scale": kept.scale, "truncation": kept.length.astype(np.float64)}
            return Draws(
                white=kept.coefficients,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=float(np.exp(tuning.log_step) if uses(tuning) else moves.reach),
                n_warmup=n_warmup,
                thin=thin,
                hyperparameters={
                    name: values
                    for name, values in learnt.items()
                    if is_learnt(getattr(target, name))
                },
            )

        return drive(
            start,
            advance,
            collect,
            Kept,
            n_samples=n_samples,
            n_warmup=n_warmup,
            stop=stop,
            progress=progress,
            checkpoint=checkpoint,
            fingerprint=(target, self, n_chains, n_warmup, thin, seed),
        )
