"""Files of answers of a fit in a store, and what is printed of it."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from graphuq.classifier.stored.fit import StoredFit, running
from graphuq.classifier.stored.table import write_probabilities
from graphuq.engine.store import Stage
from graphuq.results.summary import Summary
from graphuq.utils.output_folder import atomic_folder, output_folder
from graphuq.utils.version import __version__


def write_answers(classifier: Any, path: str | Path) -> list[Path]:
    """Write the table of all rows, and the settings; see `GraphClassifier.to_parquet`."""
    fit: StoredFit = classifier._stored
    with running(classifier) as tasks:
        stage = Stage.of(fit.stages.store, "probabilities", {}, [fit.posterior])
        if not stage.is_done:
            write_probabilities(stage, fit.stages.first.parts, fit.basis, fit.posterior, tasks)
        fit.counted = stage.record
        with (
            output_folder(path) as output,
            atomic_folder(output, "rows-?????.parquet") as folder,
        ):
            for k in range(fit.counted["n_files"]):
                file = stage.path("rows", k, ".parquet")
                _link_or_copy(file, folder / file.name)
            text = json.dumps(_described(fit), indent=1)
            (folder / "settings.json").write_text(text, encoding="utf-8")
            names = sorted(file.name for file in folder.iterdir())
    return [Path(path) / name for name in names]


def summary_of_store(classifier: Any) -> Summary:
    """Return a short text: verdict, counts by class, hyperparameters.

    Counts and mean probabilities of all rows are there after `write_answers`.
    """
    fit: StoredFit = classifier._stored
    record = fit.posterior.record
    lines = [record["verdict"], ""]
    lines.append(
        f"{fit.stages.table.n_rows} rows, {record['n_labelled']} labelled, "
        f"{len(record['classes'])} classes; recall of the neighbours {classifier.recall_:.4f}; "
        f"{classifier.n_components_} component(s)."
    )
    if fit.counted is not None:
        for k, name in enumerate(record["classes"]):
            number, total = fit.counted["counts"][k], fit.counted["sums"][k]
            mean = f"{total / number:.3f}" if number else "-"
            lines.append(f"{name}: {number} rows, mean probability {mean}")
    for name, value in record["hyperparameters"].items():
        lines.append(f"Hyperparameter {name}: {value:.4g}, chosen by the evidence.")
    if record["blocks"]:
        lines.append(f"Blocks beside the eigenpairs: {', '.join(record['blocks'])}.")
    if record["log_evidence"] is not None:
        lines.append(f"Log evidence: {record['log_evidence']:.2f}.")
    if record["description"] not in record["verdict"]:
        lines.append(record["description"])
    return Summary("\n".join(lines))


def record_of_store(classifier: Any) -> dict[str, Any]:
    """Return the facts of `summary_of_store`, and the settings, as plain data."""
    fit: StoredFit = classifier._stored
    return {
        "n_rows": fit.stages.table.n_rows,
        "n_labelled": fit.posterior.record["n_labelled"],
        "recall": classifier.recall_,
        "n_components": classifier.n_components_,
        **_described(fit),
    }


def _described(fit: StoredFit) -> dict[str, Any]:
    posterior = fit.posterior.record
    assert fit.counted is not None
    return {
        "graphuq_version": __version__,
        **posterior["settings"],
        "hyperparameters": posterior["hyperparameters"],
        "blocks": posterior["blocks"],
        "log_evidence": posterior["log_evidence"],
        "classes": posterior["classes"],
        "counts": fit.counted["counts"],
        "graph_record": fit.stages.first.graph.record,
        "n_passes": fit.stages.first.pairs.record["n_passes"],
        "verdict": posterior["verdict"],
    }


def _link_or_copy(file: Path, target: Path) -> None:
    """Give a file a second name, or copy it if the file system of the target is another one."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
