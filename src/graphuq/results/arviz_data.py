"""A result as ArviZ data: class probabilities and hyperparameters before internal coordinates."""

import os
import tempfile
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from graphuq.inference import Point
from graphuq.results.diagnostics import monitored_nodes, node_rows
from graphuq.results.joint_draws import joint_draws
from graphuq.results.leaving_out import label_log_probs
from graphuq.results.sampling import draws as draws_of
from graphuq.results.sampling import is_sampled
from graphuq.results.storage import label_groups
from graphuq.results.summaries import class_probability_draws, latent_draws
from graphuq.results.summaries.ordered import one_link, shares_of_one_field
from graphuq.results.summaries.random_label import class_shares
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.results.result import Result

INDEPENDENT = 4, 250  # chains and draws of an approximation
INTERNAL = "unconstrained_posterior"  # ArviZ's own name of a group of transformed coordinates


def to_arviz(result: "Result") -> Any:
    """Return the draws as ArviZ data: ``InferenceData`` before ArviZ 1, then a ``DataTree``.

    Group ``posterior`` holds what `arviz.summary` should show. ``class_probability`` of shape
    (chain, draw, node, class) is the probability of each class given the draw, at up to 50
    nodes; `Result.classes` are its coordinates. Its mean is that of the posterior, from which
    `Result.probabilities` of an average differ (`graphuq.results.reported`). Learnt
    hyperparameters have their own names. ``u`` is the latent field at the same nodes. Group
    ``unconstrained_posterior`` holds the white coordinates in which the chains move. Group
    ``log_likelihood`` holds the log probability of each given label, as ``arviz.loo`` and
    ``arviz.compare`` need it; `graphuq.results.leave_one_out` has smaller errors. The groups
    ``sample_stats``, ``observed_data`` and ``constant_data`` follow ArviZ's conventions. For a
    Gaussian approximation, ``posterior`` has 1,000 independent draws of it, at unlabelled nodes,
    whose means differ from the probabilities of several classes (docs/theory/average.md, "Without
    draws"). Its numbers are in groups of their own, as those of a point, which has no draws.
    """
    require_extra("arviz")
    import xarray as xr

    groups = label_groups(result.posterior)
    stored = result.answer.to_datasets()
    if is_sampled(result):
        kept, stats = stored["posterior"], stored["sample_stats"]
        groups = {
            "posterior": _posterior(result),
            # ArviZ would take this name for the log likelihoods of single observations.
            "sample_stats": stats.rename(log_likelihood="total_log_likelihood"),
            "log_likelihood": _log_likelihood(result),
            INTERNAL: kept[["white"]],
            **groups,
        }
    else:
        groups = {**_approximate(result), **stored, **groups}
    # ArviZ 1 warns when it is asked for this class, and gives DataTree in its place.
    inference_data = vars(import_arviz()).get("InferenceData")
    return xr.DataTree.from_dict(groups) if inference_data is None else inference_data(**groups)


def _posterior(result: "Result") -> "xr.Dataset":
    """Return class probabilities, learnt hyperparameters and u at nodes, in every draw."""
    posterior, draws = result.posterior, draws_of(result)
    nodes, shape = monitored_nodes(posterior), (draws.n_chains, draws.n_samples)
    rows = node_rows(posterior)[nodes]
    link = posterior.likelihood.link
    probability = class_probability_draws(draws, posterior.field, rows, link)
    u = latent_draws(draws, posterior.field, rows)
    at_nodes = {"class_probability": probability, "u": u}
    return _dataset(result, nodes, at_nodes, shape, draws.hyperparameters)


def _log_likelihood(result: "Result") -> "xr.Dataset":
    """Return the log probability of each given label in every draw."""
    import xarray as xr

    values = label_log_probs(draws_of(result), result.posterior)
    return xr.Dataset(
        {"label": (("chain", "draw", "labelled_node"), values)},
        coords={"labelled_node": result.posterior.labelled},
    )


def _dataset(
    result: "Result",
    nodes: Int[np.ndarray, " n"],
    at_nodes: Mapping[str, np.ndarray],
    shape: tuple[int, int],
    hyperparameters: Mapping[str, np.ndarray],
) -> "xr.Dataset":
    """Return arrays (node, draw, …) and hyperparameters by chain and draw."""
    import xarray as xr

    axes = ("chain", "draw", "node", "class")

    def by_chain(values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        moved = np.moveaxis(values, 0, 1)
        return axes[: moved.ndim + 1], moved.reshape(*shape, *moved.shape[1:])

    data: dict[str, Any] = {"class_probability": by_chain(at_nodes["class_probability"])}
    for name, values in hyperparameters.items():
        data[name] = (("chain", "draw", f"{name}_index")[: values.ndim], values)
    data["u"] = by_chain(at_nodes["u"])
    names = [str(name) for name in result.classes]
    return xr.Dataset(data, coords={"node": nodes, "class": names})


def _approximate(result: "Result") -> "dict[str, xr.Dataset]":
    """Return the group ``posterior`` with independent draws of Gaussians; none of a point."""
    posterior, nodes = result.posterior, monitored_nodes(result.posterior)
    nodes = np.setdiff1d(nodes, posterior.labelled)
    if isinstance(result.answer, Point) or not len(nodes):
        return {}
    n_chains, n_draws = INDEPENDENT
    u = joint_draws(
        result.answer, posterior, nodes, n_chains * n_draws, np.random.default_rng(0)
    )  # (n, S, K)
    link = posterior.likelihood.link
    if posterior.likelihood.is_multiclass:
        probability = class_shares(u, link)
    else:
        u, link = u[:, :, 0], one_link(link, result.answer)
        probability = shares_of_one_field(u.copy(), np.zeros(len(nodes)), link)
    found = _dataset(result, nodes, {"class_probability": probability, "u": u}, INDEPENDENT, {})
    return {"posterior": found.assign_attrs(draws="independent, of an approximation")}


def import_arviz() -> ModuleType:
    """Import ArviZ when it is first needed, since that takes a second, and silence its banner.

    Some versions of ArviZ write to the user's cache folder when they are imported, and fail if it
    is not writable. They are given a temporary folder during the import.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            import arviz
        except OSError:
            usual = os.environ.get("XDG_CACHE_HOME", "")
            with tempfile.TemporaryDirectory() as folder:
                os.environ["XDG_CACHE_HOME"] = folder
                try:
                    import arviz
                finally:
                    os.environ["XDG_CACHE_HOME"] = usual
    module: ModuleType = arviz
    return module
