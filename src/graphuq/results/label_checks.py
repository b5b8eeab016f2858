"""Checks of the given labels by leave-one-out, and sets of classes."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import IncompatibleParts, NotConvergedWarning
from graphuq.results.caching import kept
from graphuq.results.class_sets import check_method, conformal_sets, posterior_sets
from graphuq.results.expert_answers import pooled_leave_one_out
from graphuq.results.label_numbers import is_labelled
from graphuq.results.leaving_out import MAX_SHAPE, LeaveOneOut, given_classes
from graphuq.results.reported import as_reported
from graphuq.utils.extras import require_extra
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.results.result import Result

MANY = 0.1  # share of unreliable rows from which there is a warning
SUSPECT = 0.1  # leave-one-out probability of a given label below which it should be checked
TINY = 1e-300  # in place of a sum of probabilities that is 0
CONFIDENT = 0.5  # probability of another class from which such a label should be checked


@kept
def kept_leave_one_out(result: "Result") -> LeaveOneOut:
    """Return what `leave_one_out` does, without its warning."""
    return pooled_leave_one_out(result)


def leave_one_out(result: "Result") -> LeaveOneOut:
    """Return the class probabilities of each labelled node given all other labels.

    Draws are reweighted by ``1/p(y_j | u_j)`` with Pareto smoothing (Vehtari, Simpson, Gelman,
    Yao & Gabry 2024). For a Gaussian approximation, the cavity of the label is used; for two
    classes also where weights are unreliable. No hyperparameter is chosen again. With more than two
    classes and few labels, K J⁴ up to 4 million, expectation propagation fits the other labels
    again. With more, its cavities give labels that contradict their neighbours too much
    probability, but rank them in the same order.

    Returns
    -------
    LeaveOneOut
        ``of_label``, shape (J, K): probability that a label of each class would be given, noise
        included. ``of_class``, shape (J, K): probability of the class as `Result.probabilities`
        defines it, without the noise. ``pareto_shape``, shape (J,): k̂ of the weights. Rows in
        the order of ``posterior.labelled``, columns in that of ``classes``.

    Raises
    ------
    IncompatibleParts
        If the result is a point, or draws with a step likelihood such as `NoiseFree` and
        `LevelSet`: such draws do not show what the other labels say.

    Warns
    -----
    NotConvergedWarning
        If the importance weights of more than a tenth of the labels are unreliable (k̂ > 0.7).

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> gq.leave_one_out(classifier.fit(moons.features, y).result_).of_label.shape
    (20, 2)
    """
    found = kept_leave_one_out(result)
    poor = int((found.pareto_shape > MAX_SHAPE).sum())
    if poor > MANY * len(found.pareto_shape):
        warn_user(
            f"importance weights of {poor} of {len(found.pareto_shape)} labels are unreliable "
            f"(k̂ > {MAX_SHAPE}), so that their leave-one-out probabilities may be too high; "
            "compare a fit without these labels, or use a larger noise_std",
            NotConvergedWarning,
        )
    return LeaveOneOut(*(part.copy() for part in found))


def suspect_labels(
    result: "Result", n: int | None = None, *, likely_wrong: bool = False
) -> "pd.DataFrame":
    """Return the given labels from the least to the most probable given all others.

    A label that is the only one of its class is improbable given the others, whether it is
    right or wrong.

    Parameters
    ----------
    result : Result
    n : int, optional
        Largest number of labels; all by default.
    likely_wrong : bool, default False
        Only labels that are probably wrong: their leave-one-out probability is below 0.1,
        another class has at least 0.5, and another label of the same class is given. The table
        is then empty where `leave_one_out` raises an error, and there is no warning.

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
    >>> int(gq.suspect_labels(result, 1)["node"][0])
    7
    """
    require_extra("tables")
    if likely_wrong:
        return _likely_wrong(result).head(n if n is not None else len(result.posterior.labels))
    found = leave_one_out(result)
    table = _label_table(result, found.of_label, found.pareto_shape)
    return table if n is None else table.head(n)


def prediction_sets(
    result: "Result", coverage: float = 0.9, method: str = "posterior"
) -> Bool[np.ndarray, "N K"]:
    """Return a set of classes for each node that should contain its class.

    Parameters
    ----------
    result : Result
    coverage : float, default 0.9
        Share of the unlabelled nodes whose set should hold the class, in (0, 1). It is more where
        the most probable classes alone are right more often, because no set is empty.
    method : {"posterior", "conformal"}, default "posterior"
        "posterior": the smallest sets with this share under the posterior; see
        `graphuq.results.class_sets.posterior_sets`.
        "conformal": classes at least as probable as most given labels were, each given all
        others; see `graphuq.results.class_sets.conformal_sets`. Its coverage, averaged
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

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> gq.prediction_sets(classifier.fit(moons.features, y).result_).shape
    (200, 2)
    """
    probabilities = result.probabilities
    return sets_of(result, probabilities, probabilities, coverage, method)


def sets_of(
    result: "Result",
    probabilities: Float[np.ndarray, "M K"],
    of_nodes: Float[np.ndarray, "N K"],
    coverage: float,
    method: str,
) -> Bool[np.ndarray, "M K"]:
    """Return the sets of rows with given class probabilities; see `prediction_sets`.

    ``of_nodes`` are those of the nodes; the unlabelled ones tell how large posterior sets are.
    """
    check_method(method)
    if method == "posterior":
        free = ~is_labelled(result)
        return posterior_sets(probabilities, coverage, of_nodes[free] if free.any() else of_nodes)
    n_known = probabilities.shape[1]
    withheld = as_reported(leave_one_out(result).of_class, result)[:, :n_known]
    given = withheld[np.arange(len(withheld)), given_classes(result.posterior)]
    total = withheld.sum(axis=1)  # below 1 if some classes have no label
    return conformal_sets(probabilities, given / np.maximum(total, TINY), coverage)


def _likely_wrong(result: "Result") -> "pd.DataFrame":
    """Return a row for each label that is probably wrong."""
    posterior = result.posterior
    try:
        probabilities, _, shape = kept_leave_one_out(result)
    except IncompatibleParts:
        n_labels = len(posterior.labels)
        return _label_table(result, np.ones((n_labels, len(result.classes))), np.ones(n_labels))[:0]
    table = _label_table(result, probabilities, shape)
    codes, counts = np.unique(given_classes(posterior), return_counts=True)
    single = np.isin(table["given"], result.classes[codes[counts == 1]])
    wrong = (table["probability"] < SUSPECT) & (table["other_probability"] >= CONFIDENT)
    return table[wrong & ~single]


def _label_table(
    result: "Result", probabilities: Float[np.ndarray, "J K"], shape: Float[np.ndarray, " J"]
) -> "pd.DataFrame":
    """Return a row for each label, from the least to the most probable one."""
    require_extra("tables")
    import pandas as pd

    given, rows = given_classes(result.posterior), np.arange(len(probabilities))
    others = probabilities.copy()
    others[rows, given] = -1.0
    other = others.argmax(axis=1)
    table = pd.DataFrame(
        {
            "node": result.posterior.labelled,
            "given": result.classes[given],
            "probability": probabilities[rows, given],
            "other": result.classes[other],
            "other_probability": probabilities[rows, other],
            "pareto_shape": shape,
        }
    )
    return table.sort_values("probability", kind="stable", ignore_index=True)
