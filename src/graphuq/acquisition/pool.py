r"""Candidates for the next label and their Gaussian posterior, conditioned on picks of a batch.

The formulas are in docs/theory/answers.md, "What a label would tell". With the field's mean m_i and
variance v_i at row i, class probabilities follow a softmax of sharpness
``β_i = π / √(6 (v_i + γ²))``. A label of class y at row c then moves the logits of row i by

    β_i C_ic a_y,    a_y = β_c (e_y − p_c),

and its Fisher information in the fields at c, ``β_c² (diag p_c − p_c p_cᵀ)``, lowers v_i and with
it raises β_i.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.acquisition.joint_covariance import JointCovariance
from graphuq.errors import IncompatibleParts
from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.results.joint_draws import coefficient_moments, seen_draws
from graphuq.results.joint_labels import link_of
from graphuq.results.label_numbers import margin
from graphuq.results.result import Result
from graphuq.results.summaries.ordered import cuts

SHARPNESS = np.pi / np.sqrt(6)  # of a softmax whose noise has unit variance
MAX_ROWS = 1_000  # candidates and targets that are kept
MAX_DRAWS = 1_000  # draws of the chains from which the covariance is estimated
FLOOR = 1e-12  # least probability whose logarithm is taken


@dataclasses.dataclass(frozen=True, eq=False)
class Pool:
    """Unlabelled rows, their class probabilities and their joint Gaussian posterior.

    Attributes
    ----------
    rows : numpy.ndarray of int, shape (M,)
        Row numbers of the candidates.
    n_represented : numpy.ndarray, shape (M,)
        Number of rows that could be labelled for which a candidate stands.
    probabilities : numpy.ndarray, shape (M, K)
        Class probabilities of the candidates.
    target_rows : numpy.ndarray of int, shape (T,)
        Row numbers of a random sample of all unlabelled rows, which stand for all of them.
    target_probabilities : numpy.ndarray, shape (T, K)
        Class probabilities of these; those of a row with a label are (nearly) 0 and 1.
    sharpness, target_sharpness : numpy.ndarray, shape (M,) and (T,)
        β.
    joint : JointCovariance
        Posterior covariance of the field of a class, averaged over classes.
    noise_std : float
        γ of the probit that is equal to the likelihood, or of ordered classes; 0 without either.
        Ordered classes have one field; what a label of one of them would change is as if each had
        its own.
    rng : numpy.random.Generator
    """

    rows: Int[np.ndarray, " M"]
    n_represented: Float[np.ndarray, " M"]
    probabilities: Float[np.ndarray, "M K"]
    target_rows: Int[np.ndarray, " T"]
    target_probabilities: Float[np.ndarray, "T K"]
    sharpness: Float[np.ndarray, " M"]
    target_sharpness: Float[np.ndarray, " T"]
    joint: JointCovariance
    noise_std: float | int
    rng: np.random.Generator

    @staticmethod
    def of(result: Result, candidates: Int[np.ndarray, " M"], rng: np.random.Generator) -> "Pool":
        """Make the pool of a result.

        Parameters
        ----------
        result : Result
        candidates : numpy.ndarray of int, shape (M,)
            Unlabelled rows. Of many, the least certain and a random sample are kept.
        rng : numpy.random.Generator

        Raises
        ------
        IncompatibleParts
            If the result is a point, which has no uncertainty.
        """
        candidates, n_represented = _screened(result, candidates, rng)
        targets = np.flatnonzero(is_unlabelled(result))
        if len(targets) > MAX_ROWS:
            targets = rng.choice(targets, MAX_ROWS, replace=False)
        factor, own = _field_factor(result)
        basis, scale = result.posterior.spectrum.basis, result.posterior.spectrum.node_scale
        at = [
            scale[nodes, None] * (np.asarray(basis[nodes]) @ factor)
            for nodes in (candidates, targets)
        ]
        joint = JointCovariance(at[0], at[1], (own * scale[candidates]) ** 2)
        noise = result.posterior.likelihood.unshifted.probit_noise_std
        noise = float(noise) if isinstance(noise, float | int) else 0.0
        if cuts(link := link_of(result)):
            noise = float(link[1][0])
        probabilities = np.maximum(result.probabilities, FLOOR)
        variance = (at[1] ** 2).sum(axis=1) + (own * scale[targets]) ** 2
        return Pool(
            rows=candidates,
            n_represented=n_represented,
            probabilities=probabilities[candidates],
            target_rows=targets,
            target_probabilities=probabilities[targets],
            sharpness=SHARPNESS / np.sqrt(joint.variance + noise**2),
            target_sharpness=SHARPNESS / np.sqrt(variance + noise**2),
            joint=joint,
            noise_std=noise,
            rng=rng,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return self.probabilities.shape[1]

    @property
    def covariance(self) -> Float[np.ndarray, "M M"]:
        """Posterior covariance of the field of a class at the candidates."""
        return self.joint.matrix

    @property
    def cross_covariance(self) -> Float[np.ndarray, "M T"]:
        """Posterior covariance of the field between candidates and targets."""
        return self.joint.across

    @property
    def variance(self) -> Float[np.ndarray, " M"]:
        """Posterior variance of the field of a class at each candidate."""
        return self.joint.variance

    @property
    def observed_variance(self) -> Float[np.ndarray, " M"]:
        """Variance of the field of a class at each candidate, with noise: ``C_cc + γ²``."""
        return np.asarray(self.variance + self.noise_std**2)

    def target_probabilities_given(
        self, at: int, label: int | Int[np.ndarray, " y"], targets: Int[np.ndarray, " t"]
    ) -> Float[np.ndarray, "*y t K"]:
        """Return probabilities of these targets if the candidate at ``at`` had this label.

        Several labels give one array for each.
        """
        p, sharpness = self.target_probabilities[targets], self.target_sharpness[targets]
        across = self.joint.with_targets(at, targets)
        later = _sharpened(sharpness, across, self._gain(at))
        new = _moved(p, sharpness, later, across, self._pull(at, label))
        known = np.arange(self.n_classes) == np.asarray(label)[..., None]
        own = self.target_rows[targets] == self.rows[at]
        new[..., own, :] = np.where(known, 1.0, FLOOR)[..., None, :]
        return new

    def given(self, at: int, label: int | None = None) -> "Pool":
        """Return the pool as if the candidate at this position were labelled.

        Parameters
        ----------
        at : int
            Position among the candidates.
        label : int, optional
            Code of its class; by default the most probable one.
        """
        label = int(self.probabilities[at].argmax()) if label is None else label
        gain, pull = self._gain(at), self._pull(at, label)
        column, across = self.joint.column(at), self.joint.with_targets(at)
        kept = np.arange(len(self.rows)) != at
        later = _sharpened(self.sharpness, column, gain)
        return dataclasses.replace(
            self,
            rows=self.rows[kept],
            n_represented=self.n_represented[kept],
            probabilities=_moved(self.probabilities, self.sharpness, later, column, pull)[kept],
            target_probabilities=self.target_probabilities_given(
                at, label, np.arange(len(self.target_rows))
            ),
            sharpness=later[kept],
            target_sharpness=_sharpened(self.target_sharpness, across, gain),
            joint=self.joint.given(at, gain),
        )

    def _gain(self, at: int) -> float:
        """Return g: a label at c takes ``g C_ic C_jc`` from the covariance."""
        p = self.probabilities[at]
        information = self.sharpness[at] ** 2 * (p * (1 - p)).max()
        return float(information / (1 + information * self.joint.column(at)[at]))

    def _pull(self, at: int, label: int | Int[np.ndarray, " y"]) -> Float[np.ndarray, "*y K"]:
        """Return a_y."""
        p, labels = self.probabilities[at], np.asarray(label)[..., None]
        return np.asarray(self.sharpness[at] * ((np.arange(len(p)) == labels) - p))


def is_unlabelled(result: Result) -> Bool[np.ndarray, " N"]:
    """Return whether each row has no label; a mask, since sorting a million rows takes a while."""
    free = np.ones(len(result.has_evidence), dtype=bool)
    free[result.posterior.labelled] = False
    return free


def _sharpened(sharpness: np.ndarray, column: np.ndarray, gain: float) -> np.ndarray:
    """Return β after the variance fell by ``gain × column²``."""
    return np.asarray(1 / np.sqrt(sharpness**-2.0 - gain * (column / SHARPNESS) ** 2))


def _moved(
    p: np.ndarray, sharpness: np.ndarray, later: np.ndarray, column: np.ndarray, pull: np.ndarray
) -> np.ndarray:
    """Return probabilities after means moved by ``column × pull``, and β became ``later``."""
    logits = (later / sharpness)[:, None] * np.log(p)
    logits = logits + (later * column)[:, None] * pull[..., None, :]
    new = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.maximum(new / new.sum(axis=-1, keepdims=True), FLOOR)


def _screened(
    result: Result, rows: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `MAX_ROWS` rows, and the number of rows for which each stands.

    They are the least certain ones, and a random sample of the rest.
    """
    if len(rows) <= MAX_ROWS:
        return rows, np.ones(len(rows))
    half, order = MAX_ROWS // 2, rng.permutation(rows)
    order = order[np.argsort(margin(result)[order], kind="stable")]
    rest = rng.choice(order[half:], MAX_ROWS - half, replace=False)
    stands_for = np.repeat([1.0, (len(rows) - half) / len(rest)], [half, len(rest)])
    return np.append(order[:half], rest), stands_for


def _field_factor(result: Result) -> tuple[np.ndarray, float]:
    """Return R with ``C = Q R Rᵀ Qᵀ`` for the mean covariance of a class, and the own deviation."""
    posterior, answer = result.posterior, result.answer
    if isinstance(answer, Point):
        raise IncompatibleParts(
            f"{answer.description} gives a point without uncertainty; use "
            'inference="expectation-propagation"'
        )
    field, n_fields = posterior.field.one_class, posterior.n_fields
    if isinstance(answer, GaussianApproximation | GaussianMixture):
        covariance = coefficient_moments(answer, posterior)[1]
    else:
        seen = seen_draws(answer, posterior)
        seen = seen[:: max(1, len(seen) // MAX_DRAWS)]
        centred = seen - seen.mean(axis=0)
        inner = np.einsum("ski,skj->ij", centred, centred, optimize=True) / len(seen)
        back = np.asarray(field.coefficient_map)
        covariance = back @ (inner / n_fields) @ back.T
        if not posterior.learnt:
            covariance += np.diag(np.asarray(field.mode_variance)) - back @ back.T
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0)), float(field.tail_std)
