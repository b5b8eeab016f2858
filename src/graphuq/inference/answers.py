"""What an approximation answers with: a Gaussian or a point in place of the posterior."""

from typing import Any, NamedTuple


class GaussianApproximation(NamedTuple):
    """A Gaussian in place of the posterior.

    Attributes
    ----------
    white_mean, white_covariance : numpy.ndarray, shape (r,) and (r, r)
        Of the white coordinates that unlabelled nodes depend on; see `graphuq.posterior.field`.
    labelled_mean, labelled_variance : numpy.ndarray, shape (J,)
        Of u at each labelled node.
    labelled_label_mean : numpy.ndarray, shape (J,)
        ``E sign(u)`` there, which the Gaussian itself gets wrong: u is skew where it was seen.
    log_evidence : float
        Its estimate of ``log p(y)``.
    n_iterations : int
    seconds : float
        Wall time, compilation included.
    description : str
        How it was got, in words.
    sites : numpy.ndarray, shape (2, J), or None
        Precisions and shifts of the Gaussians in place of each label's likelihood, if it is made
        of such.
    """

    white_mean: Any
    white_covariance: Any
    labelled_mean: Any
    labelled_variance: Any
    labelled_label_mean: Any
    log_evidence: float
    n_iterations: int
    seconds: float
    description: str
    sites: Any = None


class Point(NamedTuple):
    """One field in place of the posterior: it says nothing of how sure it is.

    Attributes
    ----------
    seen : numpy.ndarray, shape (r,)
        White coordinates that unlabelled nodes depend on; see `graphuq.posterior.field`.
    labelled : numpy.ndarray, shape (J,)
        u at each labelled node.
    objective : float
        Minus the log density of the posterior there, up to a constant.
    n_iterations : int
    seconds : float
        Wall time, compilation included.
    description : str
        How it was got, in words.
    """

    seen: Any
    labelled: Any
    objective: float
    n_iterations: int
    seconds: float
    description: str
