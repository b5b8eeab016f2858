"""Checks of the given labels by leave-one-out, and sets of classes; a base class of `Result`."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import IncompatibleParts, NotConvergedWarning
from graphuq.inference import GaussianApproximation, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.posterior import Posterior
from graphuq.results.leave_one_out import MAX_SHAPE, LeaveOneOut, given_classes, leave_one_out
from graphuq.results.prediction_sets import check_method, conformal_sets, posterior_sets
from graphuq.results.uncertainty import class_probabilities
from graphuq.utils.extras import require_extra
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

MANY = 0.1  # share of unreliable rows from which there is a warning
SUSPECT = 0.1  # leave-one-out probability of a given label below which it should be checked
TINY = 1e-300  # in place of a sum of probabilities that is 0
CONFIDENT = 0.5  # probability of another class from which such a label should be checked


class LabelChecks:
    """Leave-one-out probabilities, suspect labels and prediction sets."""

    label_mean: Float[np.ndarray, "N *K"]
    posterior: Posterior
    answer: Draws | GaussianApproximation | Point
    classes: np.ndarray

    @cached_property
    def withheld(self) -> LeaveOneOut:
        """Leave-one-out probabilities with and without noise, and k̂ of their weights."""
        return leave_one_out(self.answer, self.posterior)

    def leave_one_out(self, with_noise: bool = True) -> Float[np.ndarray, "J K"]:
        """Return the class probabilities of each labelled node given all other labels.

        Draws are reweighted by ``1/p(y_j | u_j)`` with Pareto smoothing (Vehtari, Simpson, Gelman,
        Yao & Gabry 2024). For a Gaussian approximation, the cavity of the label is used; for two
        classes also where weights are unreliable. Nothing is refitted: hyperparameters that the
        evidence chose stay as all labels chose them. The cavities of multiclass expectation
        propagation give labels that contradict their neighbours too much probability, but rank
        them in the same order.

        Parameters
        ----------
        with_noise : bool, default True
            True: probability that a label of each class would be given, noise included. False:
            probability of the class as `class_probabilities` defines it, without the noise.

        Returns
        -------
        numpy.ndarray, shape (J, K)
            Rows in the order of ``posterior.labelled``, columns in that of ``classes``.

        Raises
        ------
        IncompatibleParts
            If the result is a point, or draws with a step likelihood such as `NoiseFree` and
            `LevelSet`: such draws do not show what the other labels say.

        Warns
        -----
        NotConvergedWarning
            If the importance weights of more than a tenth of the labels are unreliable (k̂ > 0.7).
        """
        found = self.withheld
        poor = int((found.pareto_shape > MAX_SHAPE).sum())
        if poor > MANY * len(found.pareto_shape):
            warn_user(
                f"importance weights of {poor} of {len(found.pareto_shape)} labels are unreliable "
                f"(k̂ > {MAX_SHAPE}), so that their leave-one-out probabilities may be too high; "
                "compare a fit without these labels, or use a larger noise_std",
                NotConvergedWarning,
            )
        return (found.of_label if with_noise else found.of_class).copy()

    def suspect_labels(self, n: int | None = None) -> "pd.DataFrame":
        """Return the given labels from the least to the most probable given all others.

        A label that is the only one of its class is improbable given the others, whether it is
        right or wrong.

        Parameters
        ----------
        n : int, optional
            Number of labels; all by default.

        Returns
        -------
        pandas.DataFrame
            Columns: ``node``; ``given``, its label; ``probability`` of that label by
            `leave_one_out`; ``other``, the most probable other class; ``other_probability``;
            ``pareto_shape``, k̂ of the importance weights, or NaN without weights.

        Raises
        ------
        IncompatibleParts
            See `leave_one_out`.

        Examples
        --------
        Two moons with one wrong label among 40.

        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.full(200, -1)
        >>> y[:40] = moons.classes[:40]
        >>> y[7] = 1 - y[7]
        >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
        >>> result = classifier.fit(moons.features, y).result_
        >>> int(result.suspect_labels(1)["node"][0])
        7
        """
        require_extra("tables")
        table = self._label_table(self.leave_one_out(), self.withheld.pareto_shape)
        return table if n is None else table.head(n)

    def labels_to_check(self, n: int = 5) -> "pd.DataFrame":
        """Return at most n labels that are probably wrong, as `suspect_labels` lists them.

        Their leave-one-out probability is below 0.1, another class has at least 0.5, and another
        label of the same class is given. The table is empty where `leave_one_out` raises an
        error; there is no warning.
        """
        require_extra("tables")
        try:
            probabilities, _, shape = self.withheld
        except IncompatibleParts:
            n_labels = len(self.posterior.labels)
            return self._label_table(np.ones((n_labels, len(self.classes))), np.ones(n_labels))[:0]
        table = self._label_table(probabilities, shape)
        labels, counts = np.unique(given_classes(self.posterior), return_counts=True)
        single = np.isin(table["given"], self.classes[labels[counts == 1]])
        wrong = (table["probability"] < SUSPECT) & (table["other_probability"] >= CONFIDENT)
        return table[wrong & ~single].head(n)

    def _label_table(
        self, probabilities: Float[np.ndarray, "J K"], shape: Float[np.ndarray, " J"]
    ) -> "pd.DataFrame":
        """Return a row for each label, from the least to the most probable one."""
        import pandas as pd

        given, rows = given_classes(self.posterior), np.arange(len(probabilities))
        others = probabilities.copy()
        others[rows, given] = -1.0
        other = others.argmax(axis=1)
        table = pd.DataFrame(
            {
                "node": self.posterior.labelled,
                "given": self.classes[given],
                "probability": probabilities[rows, given],
                "other": self.classes[other],
                "other_probability": probabilities[rows, other],
                "pareto_shape": shape,
            }
        )
        return table.sort_values("probability", kind="stable", ignore_index=True)

    def prediction_sets(
        self, coverage: float = 0.9, method: str = "posterior"
    ) -> Bool[np.ndarray, "N K"]:
        """Return a set of classes for each node that should contain its class.

        Parameters
        ----------
        coverage : float, default 0.9
            Probability with which the set should contain the class, in (0, 1).
        method : {"posterior", "conformal"}, default "posterior"
            "posterior": the smallest set whose posterior probabilities add up to ``coverage``.
            "conformal": classes at least as probable as most given labels were, each given all
            others; see `graphuq.results.prediction_sets.conformal_sets`. Its coverage, averaged
            over rows, holds although the model is wrong, if labelled rows are a random sample.

        Returns
        -------
        numpy.ndarray of bool, shape (N, K)
            Columns in the order of ``classes``.

        Raises
        ------
        InvalidInput
            If an argument is out of range, or there are too few labels for "conformal".
        IncompatibleParts
            With "conformal", if there are no leave-one-out probabilities; see `leave_one_out`.
        """
        probabilities = class_probabilities(self.label_mean)
        return self.sets_of(probabilities, coverage, method)

    def sets_of(
        self, probabilities: Float[np.ndarray, "M K"], coverage: float, method: str
    ) -> Bool[np.ndarray, "M K"]:
        """Return the sets of rows with given class probabilities; see `prediction_sets`."""
        check_method(method)
        if method == "posterior":
            return posterior_sets(probabilities, coverage)
        n_known = probabilities.shape[1]
        withheld = self.leave_one_out(with_noise=False)[:, :n_known]
        given = withheld[np.arange(len(withheld)), given_classes(self.posterior)]
        total = withheld.sum(axis=1)  # below 1 if some classes have no label
        return conformal_sets(probabilities, given / np.maximum(total, TINY), coverage)
