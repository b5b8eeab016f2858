"""Files of Label Studio: tasks with predictions, and exports with annotations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput, require
from graphuq.labelling.label_studio.config import Choices, label_config, parse_config
from graphuq.utils.checks import describe
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

Task = dict[str, Any]
WHOLE = {"annotations", "data", "predictions"}  # of which a task of a short export has none
DEFAULT_CHOICE = "label"  # as `label_config` names it


def tasks(
    data: Any,
    probabilities: Float[np.ndarray, "M K"] | None = None,
    classes: Sequence[str] | np.ndarray = (),
    *,
    config: str | None = None,
    scores: Float[np.ndarray, " n"] | None = None,
    model_version: str = "graphuq",
) -> list[Task]:
    """Return tasks for Label Studio, with the likeliest class of each as a prediction.

    Written with ``json.dump``, they can be imported.

    Parameters
    ----------
    data : pandas.DataFrame, list of dict, or list of str
        Fields of the tasks. Texts become the field that the configuration shows.
    probabilities : numpy.ndarray, shape (N, K), optional
        Class probabilities; without them there are no predictions.
    classes : sequence of str, length K
        Names of the classes.
    config : str, optional
        Label configuration; by default that of `label_config`.
    scores : numpy.ndarray, shape (N,), optional
        Score of each prediction; Label Studio's uncertainty sampling shows the lowest first. By
        default the probability of the likeliest class.
    model_version : str, default "graphuq"

    Raises
    ------
    InvalidInput
        If lengths differ, or a class is not in the configuration.

    Examples
    --------
    >>> import numpy as np
    >>> made = tasks(["Buy now!"], np.array([[0.9, 0.1]]), ["spam", "mail"])
    >>> made[0]["data"], made[0]["predictions"][0]["result"][0]["value"]
    ({'text': 'Buy now!'}, {'choices': ['spam']})
    """
    names = [str(name) for name in classes]
    choices = parse_config(label_config(names or ["class"]) if config is None else config)
    fields = _fields(data, choices)
    if probabilities is None:
        return [{"data": values} for values in fields]
    fits = probabilities.shape == (len(fields), len(names))
    require(fits, "probabilities", describe(probabilities),
            f"give shape ({len(fields)}, {len(names)}): tasks, classes")  # fmt: skip
    unknown = [name for name in names if name not in choices.classes]
    require(not unknown, "classes", f"{unknown[:3]} are not in the configuration", "add them")
    score = np.max(probabilities, axis=1) if scores is None else np.asarray(scores)
    require(len(score) == len(fields), "scores", describe(score), f"give {len(fields)} numbers")
    return [
        {
            "data": values,
            "predictions": [prediction(choices, names, p, float(at), model_version)],
        }
        for values, p, at in zip(fields, probabilities, score, strict=True)
    ]


def prediction(
    choices: Choices, names: Sequence[str], p: Float[np.ndarray, " K"], score: float, version: str
) -> dict[str, Any]:
    """Return the likeliest class of one task, with a score and the version of the model."""
    best = int(np.argmax(p))
    result = [choices.result(str(names[best]), float(p[best]))]
    return {"model_version": version, "score": round(score, 6), "result": result}


def annotations(export: Any, config: str | None = None) -> "pd.DataFrame":
    """Return the classes in an export of Label Studio (JSON), one row an annotation.

    Parameters
    ----------
    export : sequence of dict
        Decoded JSON export: tasks with ``annotations``; or the short one (JSON-MIN), in which a
        task has a field with the name of the choice.
    config : str, optional
        Label configuration, whose choice is read; by default any choice, or the field "label" of a
        short export.

    Returns
    -------
    pandas.DataFrame
        Columns ``row`` (position in the export), ``task`` (its number), ``label``, ``user`` and
        ``time``, in order of time. Skipped tasks are left out.

    Raises
    ------
    InvalidInput
        If an annotation has several classes, or the export is something else.

    Examples
    --------
    >>> annotations([{"id": 7, "text": "Buy now!", "label": "spam", "annotator": 1}])["label"][0]
    'spam'
    """
    require_extra("label")
    import pandas as pd

    name = None if config is None else parse_config(config).from_name
    export = _whole_tasks(_tasks(export), name)
    found = [
        {
            "row": row,
            "task": task.get("id"),
            "label": label,
            "user": user_of(annotation),
            "time": str(annotation.get("updated_at") or annotation.get("created_at") or ""),
        }
        for row, task, annotation in _parts(export, "annotations")
        if (label := label_of(annotation, name)) is not None
    ]
    table = pd.DataFrame(found, columns=["row", "task", "label", "user", "time"])
    return table.sort_values("time", kind="stable", ignore_index=True)


def predictions(export: Any, config: str | None = None) -> "pd.DataFrame":
    """Return the predictions in an export of Label Studio, one row a prediction.

    Parameters
    ----------
    export : sequence of dict
        Decoded JSON: tasks with ``predictions``, such as those of `tasks`.
    config : str, optional
        Label configuration, whose choice is read; by default any choice.

    Returns
    -------
    pandas.DataFrame
        Columns ``row``, ``task``, ``label``, ``score`` and ``model_version``.
    """
    require_extra("label")
    import pandas as pd

    name = None if config is None else parse_config(config).from_name
    found = [
        {
            "row": row,
            "task": task.get("id"),
            "label": label,
            "score": made.get("score"),
            "model_version": made.get("model_version"),
        }
        for row, task, made in _parts(_tasks(export), "predictions")
        if (label := label_of(made, name)) is not None
    ]
    return pd.DataFrame(found, columns=["row", "task", "label", "score", "model_version"])


def label_of(annotation: Mapping[str, Any], from_name: str | None = None) -> str | None:
    """Return the class of an annotation or prediction, or None if it was skipped or is empty.

    Raises
    ------
    InvalidInput
        If there are several classes.
    """
    if annotation.get("was_cancelled"):
        return None
    results = annotation.get("result")
    values = [
        part.get("value")
        for part in (results if isinstance(results, list) else [])
        if isinstance(part, dict)
        and part.get("type") == "choices"
        and from_name in (None, part.get("from_name"))
    ]
    chosen: list[Any] = []
    for value in values:
        names = value.get("choices", []) if isinstance(value, dict) else value
        require(isinstance(names, list), "annotations", f"a choice is {describe(names)}",
                "give choices as lists of names")  # fmt: skip
        chosen.extend(names or ())
    require(len(chosen) < 2, "annotations", f"one has {chosen[:3]}", "give one class a task")
    return str(chosen[0]) if chosen else None


def user_of(annotation: Mapping[str, Any]) -> str:
    """Return a name for who made an annotation: an address, or the number in Label Studio."""
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        user = user.get("email") or user.get("id")
    return f"label-studio {user}" if isinstance(user, int) else str(user or "label-studio")


def _tasks(export: Any) -> Sequence[Task]:
    """Return an export, which is refused if it is no list of tasks."""
    fits = isinstance(export, list | tuple) and all(isinstance(task, dict) for task in export)
    require(fits, "export", describe(export), "give the decoded JSON export, a list of tasks")
    return export


def _parts(
    export: Sequence[Task], key: str
) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    for row, task in enumerate(export):
        parts = task.get(key) or []
        require(isinstance(parts, list), "export", f"{key} of task {row} are {describe(parts)}",
                "give a list")  # fmt: skip
        for part in parts:
            if isinstance(part, dict):
                yield row, task, part


def _whole_tasks(export: Sequence[Task], name: str | None) -> Sequence[Task]:
    """Return the tasks of an export, those of a short one with their annotations."""
    short = {k for k, task in enumerate(export) if _is_short(task)}
    if not short:
        return export
    name = DEFAULT_CHOICE if name is None else name
    require(
        any(name in export[k] for k in short),
        "export",
        f"tasks without annotations and without a field {name!r}",
        "give the label configuration as config, which names the choice, or export as JSON",
    )
    return [_whole_task(task, name) if k in short else task for k, task in enumerate(export)]


def _is_short(task: Task) -> bool:
    return not task.keys() & WHOLE


def _whole_task(task: Task, name: str) -> Task:
    """Return a task of a short export as the long one has it."""
    value = task.get(name)
    if isinstance(value, dict):  # of a choice with several classes
        value = value.get("choices")
    chosen = value if isinstance(value, list) else [] if value in (None, "") else [value]
    result = {"type": "choices", "from_name": name, "value": {"choices": chosen}}
    annotation = {**task, "completed_by": task.get("annotator"), "result": [result]}
    return {"id": task.get("id"), "annotations": [annotation]}


def _fields(data: Any, choices: Choices) -> list[dict[str, Any]]:
    """Return the fields of each task."""
    require_extra("label")
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        data = data.astype(object).to_dict("records")
    data = list(data)
    if all(isinstance(values, str) for values in data):
        return [{choices.field: values} for values in data]
    if not all(isinstance(values, dict) for values in data):
        raise InvalidInput("data", describe(data), "give a table, a list of dict, or texts")
    missing = next((row for row, values in enumerate(data) if choices.field not in values), None)
    require(missing is None, "data", f"no field {choices.field!r} in row {missing}",
            "add it, or name another one in the configuration")  # fmt: skip
    return data
