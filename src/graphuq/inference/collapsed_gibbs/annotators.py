"""Gibbs sampler of the true classes behind the readings of several annotators."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.collapsed_gibbs.runs import run_gibbs
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import check_fields
from graphuq.utils.part import part_field

ACCURACY, TRUE_CLASS, CONFUSION = "accuracy_{}", "true_class", "confusion"
"""Names of what is drawn, in ``Draws.hyperparameters``."""


class AnnotatorGibbs(Sampler):
    r"""Draw true classes and confusion matrices beside the field (Dawid & Skene 1979).

    Node j has the true class z_j, a probit of the field: ``z_j = argmax_k (u_jk + γ ε_jk)``.
    Annotator a reads l where the true class is k with probability ``C_a[k, l]``. It has an accuracy
    α_a, from which those of its classes differ: ``C_a[k, k] ~ Beta(s α, s (1 − α))``. Wrong classes
    share the rest by a Dirichlet distribution of parameters 1/(K − 1). A step exchanges two random
    classes everywhere, accepted with the ratio of probabilities of the readings (Metropolis), so
    that chains visit solutions that mirror each other. Then it draws

    - the noisy values ``u + γ ε``, and so the true classes, given the confusion matrices, with the
      field integrated out: a sweep of `CollapsedGibbs` for the soft labels ``∏_a C_a[k, r_ja]``;
    - α_a and s_a from a grid given the true classes, with C_a integrated out, and C_a given them.

    See docs/theory/labels.md, "Several annotators".

    Parameters
    ----------
    readings : numpy.ndarray of int, shape (J, A)
        Class that each annotator read at each labelled node; −1 for none.
    right, wrong : float, default 4.0 and 1.0
        ``α_a ~ Beta(right, wrong)``, whose mean is 4/5. The agreement s_a is 2, 8, 32 or 128 with
        equal probabilities.

    Raises
    ------
    InvalidInput
        If the readings are no such matrix, or a parameter is not positive.
    """

    readings: Any = part_field(converter=np.asarray, default=((-1,),))
    right: float = 4.0
    wrong: float = 1.0
    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 400
    default_thin: ClassVar[int] = 10
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.reference is None, "reference", f"{self.reference}", "leave it out")
        kind, shape = self.readings.dtype.kind, self.readings.shape
        require(
            kind == "i" and len(shape) == 2,
            "readings",
            f"{self.readings.dtype} of shape {shape}",
            "give integers: one row for each labelled node, one column for each annotator",
        )
        for name in ("right", "wrong"):
            value = getattr(self, name)
            require(value > 0, name, f"{value!r}", "use a positive number")

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is none of soft labels of these nodes, or None."""
        likelihood = posterior.likelihood
        if not likelihood.has_soft_labels or posterior.learnt:
            return f"{type(self).__name__} needs a SoftProbit and a fixed prior; use fixed numbers"
        if len(self.readings) != len(posterior.labels):
            return (
                f"there are readings of {len(self.readings)} nodes and {len(posterior.labels)} "
                "labelled nodes; give one row of readings for each"
            )
        if int(self.readings.max()) >= posterior.n_classes:
            return f"a reading is above the last class, {posterior.n_classes - 1}; use codes from 0"
        return None

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws in the white coordinates of the field; soft labels are only the start."""
        from graphuq.inference.collapsed_gibbs import annotated_sweeps, soft_sweeps  # imports Numba

        model = NoisyValues.of(posterior)
        table = Readings(self.readings, posterior.n_classes, self.right, self.wrong)

        def advance(rng: np.random.Generator, noisy: np.ndarray, thin: int) -> Any:
            kept = []
            for _ in range(BLOCK):
                noisy, confusion, log_weights = annotated_sweeps.run(
                    rng, noisy, model.values, table.readings, table.prior, table.n_classes, thin
                )
                white = model.white_given(rng, noisy[None])
                classes = soft_sweeps.classes_of(noisy)
                u = model.fields(white)
                value = soft_sweeps.log_probabilities(u, np.exp(log_weights), model.noise_std)[0]
                accuracy = confusion[:, classes, classes].mean(axis=1)
                kept.append((white.ravel(), value, 1.0, accuracy, classes, confusion.ravel()))
            return noisy, Kept(*map(np.stack, zip(*kept, strict=True)))

        def drawn(kept: Kept) -> dict[str, np.ndarray]:
            found = {ACCURACY.format(a): kept.accuracy[..., a] for a in range(table.n_annotators)}
            return {**found, TRUE_CLASS: kept.classes, CONFUSION: kept.confusion}

        parts = self.default_thin, model.start, advance, Kept, drawn
        return run_gibbs(self, posterior, settings, *parts)

    def __repr__(self) -> str:
        n_nodes, n_annotators = self.readings.shape
        return f"AnnotatorGibbs({n_nodes} nodes, {n_annotators} annotators)"


class Kept(NamedTuple):
    """What is kept, for each chain and draw."""

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
    accuracy: Float[np.ndarray, "C S A"]
    classes: Int[np.ndarray, "C S J"]
    confusion: Float[np.ndarray, "C S AKK"]


class Readings:
    """What annotators read, and the distributions of their confusion matrices.

    Parameters
    ----------
    readings : numpy.ndarray of int, shape (J, A)
        −1 for none.
    n_classes : int
        K.
    right, wrong : float
        See `AnnotatorGibbs`.
    """

    def __init__(
        self, readings: Int[np.ndarray, "J A"], n_classes: int, right: float, wrong: float
    ) -> None:
        from graphuq.inference.collapsed_gibbs.annotated_sweeps import AccuracyPrior  # late: Numba

        self.readings, self.n_classes = np.ascontiguousarray(readings, dtype=np.int64), n_classes
        self.n_annotators = readings.shape[1]
        one = np.full((n_classes, n_classes), wrong / (n_classes - 1))
        np.fill_diagonal(one, right)
        self.pseudo_counts = one
        self.prior = AccuracyPrior.of(right, wrong, n_classes, len(readings))
        given = readings >= 0
        self.read = np.where(given[..., None], np.eye(n_classes)[np.maximum(readings, 0)], 0.0)

    def counts(self, weights: Float[np.ndarray, "J K"]) -> Float[np.ndarray, "A K K"]:
        """Return how often each annotator read l where the true class is k."""
        return np.einsum("jk,jal->akl", weights, self.read)

    def draw(
        self, rng: np.random.Generator, classes: Int[np.ndarray, " J"]
    ) -> Float[np.ndarray, "A K K"]:
        """Draw the confusion matrices given the true classes."""
        from graphuq.inference.collapsed_gibbs.annotated_sweeps import write_confusion

        confusion = np.empty((self.n_annotators, self.n_classes, self.n_classes))
        write_confusion(rng, classes, self.readings, *self.prior, confusion)
        return confusion

    def mean(self, weights: Float[np.ndarray, "J K"]) -> Float[np.ndarray, "A K K"]:
        """Return confusion matrices given class probabilities, with independent rows.

        Each row has a Dirichlet prior of parameters ``right`` and ``wrong / (K − 1)``.
        """
        shapes = self.pseudo_counts + self.counts(weights)
        return np.asarray(shapes / shapes.sum(axis=2, keepdims=True))

    def log_weights(self, confusion: Float[np.ndarray, "A K K"]) -> Float[np.ndarray, "J K"]:
        """Return ``Σ_a log C_a[k, r_ja]`` of each node and class, less the largest of the node."""
        from graphuq.inference.collapsed_gibbs.annotated_sweeps import write_log_weights

        weights = np.empty((len(self.readings), self.n_classes))
        write_log_weights(self.readings, confusion, weights)
        return weights

    def without_graph(self, n_rounds: int = 30) -> Float[np.ndarray, "J K"]:
        """Return class probabilities by the readings alone: Dawid & Skene's EM from the votes."""
        votes = self.read.sum(axis=1)
        weights = votes / votes.sum(axis=1, keepdims=True)
        for _ in range(n_rounds):
            weights = np.exp(self.log_weights(self.mean(weights)))
            weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights)
