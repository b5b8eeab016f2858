"""Exposures of counts: how much was seen of each row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.classifier.given_graph import graph_of, labels_of_names
from graphuq.classifier.regressor.values import numbers_of
from graphuq.errors import InvalidInput, require
from graphuq.models.numbers import NumbersModel

if TYPE_CHECKING:
    from graphuq.classifier.regressor.regressor import GraphRegressor

REMEDY = "give a number > 0 for every row, also where the count is unknown"


def refuse_weights(sample_weight: Any, model: NumbersModel) -> None:
    """Raise `InvalidInput` for weights that a model cannot use."""
    require(
        sample_weight is None or model.takes_weights,
        "sample_weight",
        "given for counts, whose variance is their mean",
        "leave it out; exposure= says how much was seen of a row, and NaN leaves a count out",
    )


def exposure_of_rows(
    exposure: Any, n_rows: int, model: NumbersModel
) -> Float[np.ndarray, " N"] | None:
    """Return the exposure of each row, or None if none is given.

    Raises
    ------
    InvalidInput
        If the model has none, or there is not one finite number > 0 a row.
    """
    if exposure is None:
        return None
    require(
        model.takes_exposure,
        "exposure",
        "given for numbers, which have none",
        "leave it out, or use model='counts' for counts",
    )
    numbers = numbers_of(exposure, "exposure", REMEDY)
    require(len(numbers) == n_rows, "exposure", f"{len(numbers)} values for {n_rows} rows", REMEDY)
    wrong = np.flatnonzero(~(numbers > 0))
    words = [
        f"unknown in row {i}" if np.isnan(numbers[i]) else f"{numbers[i]:g} in row {i}"
        for i in wrong[:1]
    ]
    require(len(wrong) == 0, "exposure", "".join(words), REMEDY)
    return numbers


def exposure_by_name(exposure: Any, X: Any) -> Any:
    """Return exposures of the nodes of a graph X if they are given by name, or else as they are."""
    if not isinstance(exposure, Mapping):
        return exposure
    return labels_of_names(exposure, graph_of(X), "exposure")


def exposure_to_predict(
    regressor: "GraphRegressor", exposure: Any, quantity: str, n_rows: int
) -> Float[np.ndarray, " M"] | float:
    """Return the exposure of each row to predict.

    Raises
    ------
    InvalidInput
        If it is missing, or has no meaning for the model or the quantity.
    """
    if exposure is None:
        if quantity == "measurement" and regressor.exposure_ is not None:
            raise InvalidInput(
                "exposure",
                "none, and counts of the fit have one",
                "give the exposure of each row, or quantity='field' for counts at exposure 1",
            )
        return 1.0
    require(
        quantity != "field",
        "exposure",
        "given for the field, which is for an exposure of 1",
        "leave it out, or use quantity='measurement'",
    )
    if np.ndim(exposure) == 0:
        exposure = np.full(n_rows, exposure)
    found = exposure_of_rows(exposure, n_rows, regressor.posterior_.model)
    assert found is not None
    return found
