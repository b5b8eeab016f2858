"""What the last run said of each claim, in a file beside its results."""

import json
from pathlib import Path

from graphuq.cli import atomic_write
from graphuq.errors import StorageError
from graphuq_papers.base import Context, Done, Experiment
from graphuq_papers.claims import Row

NOT_RUN = "not run"


def write_verdicts(done: Done, context: Context, folder: Path) -> Path:
    """Write ``name.json``: the verdict on each claim, and what was asked for beyond the default.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    claims = [
        {"claim": claim.sentence, "verdict": verdict, "figures": figures}
        for _, claim, (verdict, figures) in done.experiment.judge(done.outcome)
    ]
    found = {"settings": context.chosen, "claims": claims}
    path = folder / f"{done.experiment.name}.json"
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def last_verdicts(experiment: Experiment, folder: Path) -> list[Row]:
    """Return the claims of an experiment with their status, which is "not run" without a file.

    Raises
    ------
    StorageError
        If there is a file of another kind in its place.
    """
    path = folder / f"{experiment.name}.json"
    known: dict[str, Row] = {}
    settings: list[str] = []
    try:
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            known = {one["claim"]: one for one in stored["claims"]}
            settings = stored["settings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"'{path}' has no verdicts ({error!r}); delete it, or run {experiment.name} again"
        ) from None
    rows = []
    for claim in experiment.claims:
        last = known.get(claim.sentence)
        row: Row = {"claim": claim.sentence, "status": NOT_RUN, "figures": None, "settings": []}
        if last is not None:
            row |= {"status": last["verdict"], "figures": last["figures"], "settings": settings}
        rows.append(row)
    return rows
