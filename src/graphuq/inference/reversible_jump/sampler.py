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
from graphuq.inference.settings import RunSettings, check_lengths, check_memory, seed_number
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.random_series import ProbitSeries
from graphuq.utils.progress import Progress

BEGINNING = 50  # steps of warm-up that leave c where it starts, until k and g have found the labels


class ReversibleJump(Sampler):
    r"""Draw noisy labels z, the length k with the coefficients g, and the scale c, in turn.

    ``z | f`` is a normal cut at zero where there is a label (Albert & Chib 1993). Given z the
    coefficients are independent, so that k is drawn with g integrated out and a jump between
    dimensions is no more than a comparison of ``p(z | k, c)`` (Hartog & van Zanten 2018,
    Algorithm 1, its misprinted ratio corrected: the statistics ``zᵀq_i`` enter squared). Then g,
    and c, which is conjugate. g is drawn anew whether k moves or not; the paper keeps it where k
    stays, which leaves the same law invariant and mixes worse. The paper's own moves are
    ``ReversibleJump(proposal="binomial", form="plain", interweave=False, jump=False,
    whitened=False)``.

    Where labels leave the coefficients much looser than their noise holds them, as those of frames
    and of most good graphs do, z is a brake, and k sticks: moves of all coefficients with z
    integrated out (`HMCUpdates`) go before it then.

    Parameters
    ----------
    proposal : {"window", "binomial", "uniform", "triangular"}, default "window"
        How k moves. The last three are random walks by up to ``reach`` steps, and the paper's is
        ``"binomial"``. ``"window"`` draws k from its exact conditional law among ``reach + 1``
        neighbouring values, the window placed at random about k; it is always accepted.
    reach : int, optional
        By default 2, and 32 of a window.
    form : {"auto", "marginal", "reduced", "plain"}, default "auto"
        ``"plain"`` draws z at every node, as the paper does, at a cost of N k. ``"reduced"`` draws
        what the unlabelled ones add to ``Qᵀz`` at once, ``N(M g, M)`` with ``M = I − Q_LᵀQ_L``
        (MATH §4): the same law, for J k and k². ``"marginal"`` draws z at the labelled nodes alone,
        whose scale is then drawn given its direction (Liu & Wu 1999), for J k and k³: where few
        nodes have labels, nothing holds the chain back that says nothing. By default marginal
        where less than half have, else reduced, and plain with more than 4,000 eigenpairs, or
        with those of a grid, where products with them are fast transforms.
    interweave : bool, default True
        Whether c is drawn once more with the whole field scaled along with it, z integrated out
        (Yu & Meng 2011). The paper's conjugate draw alone moves c by 1/√k of itself.
    jump : bool, default True
        Whether, once a step, up to 256 modes are added or dropped together with z integrated
        out, new coefficients drawn from normals fitted to the labels (Green 1995). Given z, which
        shows every coefficient, k hardly moves.
    whitened : bool, optional
        Whether each step begins with a Hamiltonian trajectory of the coefficients and log c, and
        jumps of k that carry all of them along, z integrated out. By default where the curvature
        of the labels' log likelihood, found in warm-up, is below a fifth on average: that of z is
        1.
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
    default_chains: ClassVar[int | None] = 8  # NumPy's, one after the other in part
    always_float64: ClassVar[bool] = True

    def __check_init__(self) -> None:
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
        seed: int | np.random.Generator,
        precision: str = "float64",
        stop: StopRule | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Draws:
        """Run chains side by side on a `ProbitSeries`, in float64.

        Arguments and errors are those of `chains.run_chains`. What is kept are coefficients of the
        eigenvectors, of u.
        """
        check_lengths(n_samples, n_chains, n_warmup, thin, precision)
        check_memory(n_chains, n_samples, target.n_modes, np.dtype(np.float64))
        seed, apart = seed_number(seed), BLOCK * thin
        n_warmup = -(-n_warmup // apart) * apart
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
                begins = n_steps + step < min(BEGINNING, n_warmup)
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
