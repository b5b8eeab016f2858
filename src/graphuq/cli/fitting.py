"""Table → fitted classifier → predictions.csv, posterior.nc and report.html."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from graphuq.classifier.annotators import AnnotatorClassifier
from graphuq.classifier.answers import columns_of_fit
from graphuq.classifier.class_names import warn_of_class_names
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.options import check_numbers, model_of
from graphuq.cli.annotators import joined, say_annotators
from graphuq.cli.class_order import names_in_order
from graphuq.cli.columns import refuse_given
from graphuq.cli.facts import Facts
from graphuq.cli.options import OF_PARTS, OF_SAMPLING
from graphuq.cli.preprocessing import preprocess
from graphuq.cli.searching import SEARCH_CHECKPOINT, proportions_of, select_by_evidence
from graphuq.cli.summary import preview, say_result, say_tuned
from graphuq.cli.tables import Table
from graphuq.errors import require
from graphuq.evidence.criteria import CRITERIA
from graphuq.inference import MCMC, Approximation
from graphuq.inference.checkpoint import delete_checkpoints
from graphuq.models import LargestEvidence
from graphuq.results.label_numbers import with_classes
from graphuq.results.table import frame_of, write_table
from graphuq.run.words import inference_from
from graphuq.utils.csv_files import write_csv
from graphuq.utils.output_folder import atomic_folder
from graphuq.utils.spreadsheets import without_formulas

CHECKPOINT = ".checkpoint.npz"  # state of the chains, deleted once the files are written


def fit_and_write(
    table: Table,
    given: np.ndarray,
    options: dict,
    output: Path,
    *,
    title: str,
    positive: str | None = None,
    ordered: bool = False,
    class_order: str | None = None,
    scaling: str = "none",
    pca: int | None = None,
    image_shape: tuple[int, int] | None = None,
    search: dict | None = None,
    criterion: str = "auto",
    proportions: str | dict[str, float] | None = None,
    weights: np.ndarray | None = None,
    annotators: Sequence[str] = (),
    resume: bool = False,
    facts: Facts,
    write_more: Callable[[GraphClassifier, Path], None] | None = None,
    file_format: str = "csv",
) -> GraphClassifier:
    """Fit a classifier to a table and write its output files, all of them or none.

    Parameters
    ----------
    table : Table
        Features, row names and, where known, true classes.
    given : numpy.ndarray of str, shape (N,) or (N, A)
        Class of each labelled row, or by each annotator; empty where unlabelled.
    options : dict
        Keyword arguments of `GraphClassifier`.
    output : path
        Folder for predictions, posterior.nc and report.html.
    title : str
        Title of the report.
    positive : str, optional
        The one of two classes that is coded as +1; by default the last in sorted order.
    ordered : bool, default False
        Whether the classes are grades.
    class_order : str, optional
        Their names from the lowest to the highest; by default that of numbers.
    scaling : {"none", "standard"}, default "none"
    pca : int, optional
        Number of principal components.
    image_shape : tuple of int, optional
        Height and width, if each row is an image.
    search : dict, optional
        Parameters to select, as `EvidenceSearch` takes them.
    criterion : str, default "auto"
        Criterion of the search.
    proportions : dict or "labels", optional
        Share of each class, by name.
    weights : numpy.ndarray, shape (N,), optional
        Weight of each given label.
    annotators : sequence of str
        Names of annotators, whose labels are the columns of ``given``.
    resume : bool, default False
        Continue from the checkpoints in ``output`` instead of deleting them.
    facts : Facts
        Receives what is found.
    write_more : callable, optional
        Writes further files, given the classifier and the folder that becomes ``output``.
    file_format : {"csv", "parquet"}, default "csv"
        Format of the predictions.

    Raises
    ------
    GraphuqError
        If the input cannot be used or a file cannot be written.
    """
    names = names_in_order(given, class_order) if ordered else class_names(given, positive)
    warn_of_class_names(given.ravel(), given.ravel() != "", words_are_classes=True)
    codes: Any = codes_of_names(given, names)
    truth = _true_labels(table.truth, names, options.get("max_classes"))
    features, groups = preprocess(table, options["graph"], scaling, pca)
    checkpoints = output / CHECKPOINT, output / SEARCH_CHECKPOINT
    if not resume:
        delete_checkpoints(*checkpoints)
    shares = proportions_of(names, proportions)
    kind = AnnotatorClassifier if annotators else GraphClassifier
    order = list(range(len(names))) if ordered else False
    classifier = kind(**options, missing_label=None, class_proportions=shares, ordered=order)
    if annotators:
        codes, given = pd.DataFrame(codes, columns=list(annotators)), joined(given)
    tried = None
    if search:
        classifier, tried = select_by_evidence(
            classifier, search, criterion, features, codes, checkpoint=checkpoints[1], facts=facts
        )
    inference = inference_from(classifier.inference)
    if isinstance(inference, MCMC):
        shown = inference.is_auto and not facts.quiet and not annotators
        classifier.inference = dataclasses.replace(
            inference,
            on_first_result=(
                (lambda first: facts.progress(preview(first, names, truth))) if shown else None
            ),
            checkpoint=checkpoints[0],
        )
    classifier.set_params(progress=not facts.quiet).fit(features, codes, sample_weight=weights)
    names_given = np.array([str(name) or None for name in given], dtype=object)
    classifier.classes_ = np.array(names)  # the fit saw codes: the order of names may differ
    classifier.ordered = names if ordered else False
    result = with_classes(classifier.result_, names)
    settings = {**result.settings, "table": dict(table.settings)}
    classifier.result_ = dataclasses.replace(result, settings=settings)
    from graphuq.report import write_report  # imports matplotlib: after the first result

    images = None if image_shape is None else table.features.reshape(-1, *image_shape)
    predictions = f"predictions.{file_format}"
    with atomic_folder(output, "predictions.*") as folder:
        if tried is not None:
            without_formulas(tried).to_csv(folder / "search.csv", index=False, float_format="%.6g")
        if isinstance(classifier, AnnotatorClassifier):
            write_csv(classifier.annotators_, folder / "annotators.csv")
        answers = frame_of(columns_of_fit(classifier, table.ids, names_given))
        write_table(answers, folder / predictions)
        classifier.save(folder / "posterior.nc", groups)
        write_report(
            classifier.result_,
            folder / "report.html",
            title=title,
            class_names=names,
            ids=table.ids,
            truth=truth,
            images=images,
        )
        if write_more is not None:
            write_more(classifier, folder)
        written = sorted(path.name for path in folder.iterdir())
    delete_checkpoints(*checkpoints)
    say_result(facts, classifier.result_, names, truth, table.ids)
    facts.wrote(*(output / name for name in written))
    if isinstance(classifier, AnnotatorClassifier):
        say_annotators(facts, classifier.annotators_)
    if shares is not None:
        say_tuned(facts, classifier.transduction_, names, table.truth, given)
    return classifier


def _true_labels(
    truth: np.ndarray | None, names: Sequence[str], max_classes: int | None
) -> Float[np.ndarray, " N"] | None:
    """True labels as scores take them: ±1 for binary results, codes from 0 for multiclass ones."""
    if truth is None:
        return None
    codes = codes_of_names(truth, names)
    binary = len(names) == 2 and max_classes is None
    return 2 * codes - 1 if binary else codes


def class_names(given: np.ndarray, positive: str | None) -> list[str]:
    """Return the names of the classes in order; of two classes, the second is coded as +1.

    Raises
    ------
    InvalidInput
        If there are fewer than two classes, or ``positive`` cannot be used.
    """
    classes = sorted(set(given.ravel().tolist()) - {""})
    require(len(classes) > 0, "labels", "no row has a label", "label some rows of each class")
    require(
        len(classes) > 1, "labels", f"only the class {classes}", "label rows of a second class too"
    )
    if positive is None:
        return classes
    require(
        len(classes) == 2,
        "--positive",
        f"'{positive}' with {len(classes)} classes",
        "omit it: it needs exactly two classes",
    )
    require(positive in classes, "--positive", f"no row is labelled '{positive}'", f"use {classes}")
    return [next(c for c in classes if c != positive), positive]


def codes_of_names(values: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return the code of each name, from 0; NaN where it is empty or no name of a class."""
    place = {name: float(code) for code, name in enumerate(names)}
    codes = np.array([place.get(str(value), np.nan) for value in values.ravel()])
    return codes.reshape(values.shape)


def classifier_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments of `GraphClassifier` from the options that were given.

    Raises
    ------
    InvalidInput
        If a name is unknown, a setting has no meaning for the method, or is out of range.
    """
    named = {
        n: v
        for n, v in given.items()
        if n not in (*OF_SAMPLING.names, *OF_PARTS.names, "criterion")
    }
    return {
        "graph": "knn",
        **named,
        "model": model_of_parts(given),
        "inference": inference_of_options(given),
    }


def inference_of_options(given: Mapping[str, Any]) -> MCMC | Approximation:
    """Return the approximation, or the sampler with the settings that were given.

    Raises
    ------
    InvalidInput
        If a setting has no meaning for it, or is out of range.
    """
    inference = given.get("inference", "auto")
    settings = {name: given[name] for name in OF_SAMPLING.names if name in given}
    found = inference_from(inference, "--inference", settings)
    if isinstance(found, Approximation):
        beside = f"--inference {inference}, which draws no samples"
        refuse_given(dict.fromkeys(settings, "given"), beside, "leave it out, or name a sampler")
    return found


def check_options(options: dict, search: Sequence[str] | None, criterion: str | None) -> None:
    """Refuse options that are out of range, unknown, or without effect, before a file is read.

    Parameters
    ----------
    options : dict
        Keyword arguments of `GraphClassifier`.
    search : sequence of str, optional
        Option ``--search``.
    criterion : str, optional
        Option ``--criterion``.

    Raises
    ------
    InvalidInput
        For the first of them.
    """
    check_numbers(GraphClassifier(**options))
    model_of(options["model"])
    known = ("auto", *CRITERIA)
    require(criterion is None or criterion in known, "--criterion", f"{criterion!r} is unknown",
            f"use {', '.join(known)}")  # fmt: skip
    require(criterion is None or search, "--criterion", "given without --search",
            "leave it out, or name what to search")  # fmt: skip


def require_features(table: Table, options: Mapping[str, Any]) -> None:
    """Refuse the weights or distances of a graph as features; a symmetric matrix is one.

    Raises
    ------
    InvalidInput
        If the matrix is symmetric with a zero diagonal, and no option says what it is.
    """
    matrix = table.features
    if "precomputed" in (options["graph"], options.get("metric")) or matrix.shape[0] < 3:
        return
    if matrix.shape[0] == matrix.shape[1] and not matrix.diagonal().any():
        asymmetric = abs(matrix - matrix.T).max()
        require(
            asymmetric > 0,
            "file",
            "a symmetric matrix with zero diagonal holds no features",
            "add --graph precomputed (weights) or --metric precomputed (distances)",
        )


def model_of_parts(
    given: Mapping[str, Any],
    names: Sequence[str] = OF_PARTS.names,
    kind: Callable[..., Any] = LargestEvidence,
) -> Any:
    """Return the model of ``--model``, or one of the kind from the options of its parts.

    Raises
    ------
    InvalidInput
        If both are given, or a name is unknown.
    """
    parts = {name: given[name] for name in names if name in given}
    model: str = given.get("model", "auto")
    require(
        model == "auto" or not parts,
        ", ".join(f"--{name.replace('_', '-')}" for name in parts),
        f"given beside --model {model}",
        "leave it out, or write it in --model",
    )
    return kind(**parts) if parts else model
