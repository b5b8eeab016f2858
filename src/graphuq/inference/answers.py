"""Answers of approximations: a Gaussian or a point in place of the posterior."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphuq.inference.class_covariance import ClassCovariance
from graphuq.inference.label_leads import Leads
from graphuq.utils.extras import require_extra
from graphuq.utils.packed_datasets import packed, unpacked

if TYPE_CHECKING:
    import xarray as xr

LEADS = "leads_"  # prefix of the names of the parts of `Leads`
COVARIANCE = "class_covariance_"  # prefix of the names of the parts of a `ClassCovariance`
N_VALUES = 1_000  # by which the distribution of a mixture's component is represented


class GaussianApproximation(NamedTuple):
    """A Gaussian in place of the posterior.

    Attributes
    ----------
    white_mean, white_covariance : numpy.ndarray, shape (r,) and (r, r)
        Mean and covariance of the white coordinates that unlabelled nodes depend on; see
        `graphuq.posterior.field`. Of many classes the covariance is a `ClassCovariance`, from
        which ``numpy.asarray`` makes the matrix.
    labelled_mean, labelled_variance : numpy.ndarray, shape (J,)
        Mean and variance of u at each labelled node.
    labelled_label_mean : numpy.ndarray, shape (J,)
        ``E sign(u)`` at each labelled node. The Gaussian itself gets it wrong, because u is skew
        at an observed node.
    log_evidence : float
        Estimate of ``log p(y)``.
    n_iterations : int
    seconds : float
        Wall time, compilation included.
    description : str
        Name of the method and number of iterations, in words.
    sites : numpy.ndarray, shape (2, J), or None
        Precisions and shifts of the Gaussian site of each label, if the method has sites.
    class_weights, class_shift : numpy.ndarray, shape (J, K), or None
        The same for multiclass likelihoods, whose sites are Gaussians in the K fields of a label:
        w of the precision ``diag(w) − w wᵀ / Σ w``, and the shifts of the fields.
    leads : Leads or None
        Leads of the class of each label over the others, whose exact factors summaries use.
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
    class_weights: Any = None
    class_shift: Any = None
    leads: Any = None

    @property
    def hyperparameters(self) -> dict[str, np.ndarray]:
        """An empty dictionary, since an approximation learns no hyperparameters."""
        return {}

    def with_log_evidence(self, log_evidence: float) -> "GaussianApproximation":
        """Return the answer itself, which has its own estimate or none."""
        return self

    def to_datasets(self) -> "dict[str, xr.Dataset]":
        """Return the approximation as arrays and attributes, in one group named ``gaussian``."""
        require_extra("files")
        import xarray as xr

        axes = ("labelled_node", "class")[: self.labelled_mean.ndim]
        arrays: dict[str, Any] = {
            "white_mean": ("seen", self.white_mean),
            "labelled_mean": (axes, self.labelled_mean),
            "labelled_variance": (axes, self.labelled_variance),
            "labelled_label_mean": (axes, self.labelled_label_mean),
        }
        if self.sites is not None:
            arrays["sites"] = (("site_parameter", "labelled_node"), np.stack(self.sites))
        if self.class_weights is not None:
            arrays["class_weights"] = (axes, self.class_weights)
            arrays["class_shift"] = (axes, self.class_shift)
        if self.leads is not None:
            axis = {"codes": "labelled_node", "noise_std": ()}
            for name, values in self.leads._asdict().items():
                arrays[f"{LEADS}{name}"] = (axis.get(name, ("labelled_node", "class")), values)
        if isinstance(self.white_covariance, ClassCovariance):
            for name, values in self.white_covariance.arrays().items():
                arrays[f"{COVARIANCE}{name}"] = (
                    [f"{name}_{i}" for i in range(values.ndim)],
                    values,
                )
        else:
            arrays["white_covariance"] = (("seen", "seen_again"), self.white_covariance)
        numbers = ("log_evidence", "n_iterations", "seconds", "description")
        attributes = {name: getattr(self, name) for name in numbers}
        return {"gaussian": xr.Dataset(arrays, attrs=attributes)}

    @staticmethod
    def from_datasets(groups: "Mapping[str, xr.Dataset]") -> "GaussianApproximation":
        """Return the approximation that `to_datasets` took apart."""
        stored = groups["gaussian"]
        arrays: dict[str, Any] = {str(name): array.to_numpy() for name, array in stored.items()}
        parts = {n.removeprefix(COVARIANCE): a for n, a in arrays.items() if COVARIANCE in n}
        if parts:
            arrays = {name: a for name, a in arrays.items() if COVARIANCE not in name}
            arrays["white_covariance"] = ClassCovariance.of_arrays(parts)
        leads = {n.removeprefix(LEADS): arrays.pop(n) for n in [*arrays] if n.startswith(LEADS)}
        if leads:
            arrays["leads"] = Leads(**leads | {"noise_std": float(leads["noise_std"])})
        return GaussianApproximation(
            **arrays,
            log_evidence=float(stored.attrs["log_evidence"]),
            n_iterations=int(stored.attrs["n_iterations"]),
            seconds=float(stored.attrs["seconds"]),
            description=str(stored.attrs["description"]),
        )


class GaussianMixture(NamedTuple):
    """Gaussians in place of the posteriors of several components, and their weights.

    Attributes
    ----------
    components : tuple of GaussianApproximation, length m
        Each in the white coordinates of its own field.
    numbers : numpy.ndarray of int, shape (m,)
        Numbers of the components in the prior.
    weights : numpy.ndarray, shape (m,)
        Their probabilities, which add up to 1.
    fields : tuple of LabelledField or ClassField, length m
        The field of each component at the labelled nodes.
    log_evidence : float
    n_iterations : int
        Largest number of iterations of a component.
    seconds : float
    description : str
    """

    components: tuple[GaussianApproximation, ...]
    numbers: Any
    weights: Any
    fields: tuple[Any, ...]
    log_evidence: float
    n_iterations: int
    seconds: float
    description: str

    @property
    def hyperparameters(self) -> dict[str, np.ndarray]:
        """Numbers of the components as 1,000 equally likely values, shape (1, 1000)."""
        ends = np.cumsum(self.weights)
        at = np.searchsorted(ends, (np.arange(N_VALUES) + 0.5) / N_VALUES * ends[-1])
        return {"component": np.asarray(self.numbers)[at][None].astype(float)}

    def with_log_evidence(self, log_evidence: float) -> "GaussianMixture":
        """Return the answer itself, which has its own estimate."""
        return self

    def to_datasets(self) -> "dict[str, xr.Dataset]":
        """Return the groups ``mixture``, ``component_gaussians`` and ``component_fields``."""
        require_extra("files")
        import xarray as xr

        numbers = ("log_evidence", "n_iterations", "seconds", "description")
        mixture = xr.Dataset(
            {"number": ("component", self.numbers), "weight": ("component", self.weights)},
            attrs={name: getattr(self, name) for name in numbers},
        )
        gaussians = packed([one.to_datasets()["gaussian"] for one in self.components])
        fields = packed([field.one_class.to_dataset() for field in self.fields])
        return {"mixture": mixture, "component_gaussians": gaussians, "component_fields": fields}

    @staticmethod
    def from_datasets(groups: "Mapping[str, xr.Dataset]", field_from: Any) -> "GaussianMixture":
        """Return the mixture that `to_datasets` took apart; ``field_from`` reads a field."""
        stored = groups["mixture"]
        gaussians = unpacked(groups["component_gaussians"])
        return GaussianMixture(
            tuple(GaussianApproximation.from_datasets({"gaussian": one}) for one in gaussians),
            numbers=stored["number"].to_numpy(),
            weights=stored["weight"].to_numpy(),
            fields=tuple(field_from(one) for one in unpacked(groups["component_fields"])),
            log_evidence=float(stored.attrs["log_evidence"]),
            n_iterations=int(stored.attrs["n_iterations"]),
            seconds=float(stored.attrs["seconds"]),
            description=str(stored.attrs["description"]),
        )


class Point(NamedTuple):
    """A single field in place of the posterior, without uncertainty.

    Attributes
    ----------
    seen : numpy.ndarray, shape (r,)
        White coordinates that unlabelled nodes depend on; see `graphuq.posterior.field`.
    labelled : numpy.ndarray, shape (J,)
        u at each labelled node.
    objective : float
        Minus the log posterior density at this point, up to a constant.
    n_iterations : int
    seconds : float
        Wall time, compilation included.
    description : str
        Name of the method and number of iterations, in words.
    """

    seen: Any
    labelled: Any
    objective: float
    n_iterations: int
    seconds: float
    description: str

    @property
    def hyperparameters(self) -> dict[str, np.ndarray]:
        """An empty dictionary, since an approximation learns no hyperparameters."""
        return {}

    def with_log_evidence(self, log_evidence: float) -> "Point":
        """Return the answer itself, which has its own estimate or none."""
        return self

    @property
    def log_evidence(self) -> None:
        """The evidence of a point, which is not available."""
        return None

    def to_datasets(self) -> "dict[str, xr.Dataset]":
        """Return the point as arrays and attributes, in one group named ``point``."""
        require_extra("files")
        import xarray as xr

        arrays = {"seen": ("seen", self.seen), "labelled": ("node", self.labelled)}
        numbers = ("objective", "n_iterations", "seconds", "description")
        attributes = {name: getattr(self, name) for name in numbers}
        return {"point": xr.Dataset(arrays, attrs=attributes)}

    @staticmethod
    def from_datasets(groups: "Mapping[str, xr.Dataset]") -> "Point":
        """Return the point that `to_datasets` took apart."""
        stored = groups["point"]
        return Point(
            seen=stored["seen"].to_numpy(),
            labelled=stored["labelled"].to_numpy(),
            objective=float(stored.attrs["objective"]),
            n_iterations=int(stored.attrs["n_iterations"]),
            seconds=float(stored.attrs["seconds"]),
            description=str(stored.attrs["description"]),
        )
