"""A file → the `Result` that was saved in it."""

import json
from pathlib import Path

import xarray as xr

import graphuq.likelihoods
import graphuq.priors
from graphuq.errors import StorageError
from graphuq.inference.draws import Draws
from graphuq.posterior.field import ClassField, CoefficientField, LowRankField, TailField
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import Diagnostics, diagnose
from graphuq.results.result import Result
from graphuq.results.storage import (
    answer_from,
    arrays_to,
    basis_from_group,
    part_from_json,
    read_tree,
)


def load(path: str | Path) -> Result:
    """Read a result that `Result.save` wrote.

    Raises
    ------
    StorageError
        If the file is missing, truncated, not a result, or of another version.
    """
    return result_from_tree(read_tree(path), path)


def result_from_tree(tree: xr.DataTree, path: str | Path) -> Result:
    """The result in a tree that was read from ``path``."""
    try:
        posterior = Posterior(
            basis_from_group(tree["spectrum"].to_dataset()),
            part_from_json(tree.attrs["prior"], graphuq.priors),
            part_from_json(tree.attrs["likelihood"], graphuq.likelihoods),
            tree["constant_data"]["labelled"].to_numpy(),
            tree["observed_data"]["label"].to_numpy(),
            per_class=bool(tree.attrs.get("per_class", False)),
        )
        # The draws are in the coordinates of the field that was stored: another machine's
        # linear algebra may turn them.
        field = arrays_to(tree["field"].to_dataset(), (CoefficientField, LowRankField, TailField))
        if posterior.likelihood.is_multiclass:
            field = ClassField(field, posterior.n_fields)
        posterior.__dict__["field"] = field
        answer = answer_from(tree)
        nodes = tree["nodes"]
        summaries = {
            name: nodes[name].to_numpy()
            for name in ("label_mean", "label_mcse", "latent_mean", "latent_std")
        }
        return Result(
            **summaries,
            has_evidence=nodes["has_evidence"].to_numpy().astype(bool),
            posterior=posterior,
            answer=answer,
            diagnostics=(
                diagnose(answer, posterior, nodes["label_mcse"].to_numpy())
                if not isinstance(answer, Draws)
                else Diagnostics(**json.loads(tree.attrs["diagnostics"]))
            ),
            settings=json.loads(tree.attrs["settings"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StorageError(f"'{path}' is damaged or incomplete ({error})") from None
