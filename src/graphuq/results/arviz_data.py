"""A result as ArviZ data: class probabilities and hyperparameters before internal coordinates."""

import os
import tempfile
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.results.diagnostics import monitored_nodes, node_rows
from graphuq.results.sampling import draws as draws_of
from graphuq.results.sampling import is_sampled
from graphuq.results.storage import label_groups
from graphuq.results.summaries import class_probability_draws, latent_draws
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

    from graphuq.results.result import Result

INTERNAL = "unconstrained_posterior"  # ArviZ's own name of a group of transformed coordinates


def to_arviz(result: "Result") -> Any:
    """Return the draws as ArviZ data: ``InferenceData`` before ArviZ 1, then a ``DataTree``.

    Group ``posterior`` holds what `arviz.summary` should show. ``class_probability`` of shape
    (chain, draw, node, class) is the probability of each class given the draw, at up to 50
    nodes; `Result.classes` are its coordinates. Its mean is that of the posterior, from which
    `Result.probabilities` of an average differ (`graphuq.results.reported`). Learnt
    hyperparameters have their own names. ``u`` is the latent field at the same nodes. Group
    ``unconstrained_posterior`` holds the white coordinates in which the chains move. The groups
    ``sample_stats``, ``observed_data`` and ``constant_data`` follow ArviZ's conventions. An
    approximation has no draws: its numbers are in the group ``gaussian`` or ``point``.
    """
    require_extra("arviz")
    import xarray as xr

    groups = label_groups(result.posterior)
    stored = result.answer.to_datasets()
    if is_sampled(result):
        kept, stats = stored["posterior"], stored["sample_stats"]
        internal = {INTERNAL: kept[["white"]]}
        groups = {"posterior": _posterior(result), "sample_stats": stats, **internal, **groups}
    else:
        groups = {**stored, **groups}
    # ArviZ 1 warns when it is asked for this class, and gives DataTree in its place.
    inference_data = vars(import_arviz()).get("InferenceData")
    return xr.DataTree.from_dict(groups) if inference_data is None else inference_data(**groups)


def _posterior(result: "Result") -> "xr.Dataset":
    """Return class probabilities, learnt hyperparameters and u at nodes, in every draw."""
    require_extra("arviz")
    import xarray as xr

    posterior, draws = result.posterior, draws_of(result)
    nodes, shape = monitored_nodes(posterior), (draws.n_chains, draws.n_samples)
    rows = node_rows(posterior)[nodes]
    link = posterior.likelihood.link
    probability = class_probability_draws(draws, posterior.field, rows, link)
    u = latent_draws(draws, posterior.field, rows)
    axes = ("chain", "draw", "node", "class")

    def by_chain(values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        """Nodes × draws as chains × draws × nodes."""
        moved = np.moveaxis(values, 0, 1)
        return axes[: moved.ndim + 1], moved.reshape(*shape, *moved.shape[1:])

    data: dict[str, Any] = {"class_probability": by_chain(probability)}
    for name, values in draws.hyperparameters.items():
        data[name] = (("chain", "draw", f"{name}_index")[: values.ndim], values)
    data["u"] = by_chain(u)
    names = [str(name) for name in result.classes]
    return xr.Dataset(data, coords={"node": nodes, "class": names})


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
