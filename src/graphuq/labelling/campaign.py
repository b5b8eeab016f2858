"""A campaign of labelling in numbers: what was done, when, by whom, how well, what is left."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.errors import StorageError
from graphuq.labelling.agreement import Agreement
from graphuq.labelling.audits import summary_of
from graphuq.labelling.people import agreement_by_tag, agreement_of
from graphuq.labelling.records import DECISION, GIVES_LABEL, Record
from graphuq.labelling.session import Session
from graphuq.labelling.standing import Standing
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

BREAK_S = 300.0  # between two acts of a person, above which it is a break and no work


@dataclasses.dataclass(frozen=True)
class Person:
    """What one person did.

    Attributes
    ----------
    user : str
    n_labels : int
        Items that have a label of this person.
    n_undone : int
        Labels that were taken back by undo.
    seconds : float or None
        Median time from one act to the next, without breaks of more than five minutes.
    hours : float
        Time of work, without breaks.
    first, latest : str
        UTC.
    """

    user: str
    n_labels: int
    n_undone: int
    seconds: float | None
    hours: float
    first: str
    latest: str


@dataclasses.dataclass(frozen=True)
class Campaign:
    """A campaign in numbers.

    Attributes
    ----------
    n_items, n_known, n_labelled : int
        Items; those whose labels were known before; those that have a label, known ones included.
    people : tuple of Person
    growth : mapping of str to list of tuple of float and int
        For each person, seconds since the first label and number of labels that stand then.
    expected : list of tuple of float and float
        Seconds, and the expected number of wrong labels that was shown.
    audits : list of dict
        As of `summary_of`, with ``seconds``.
    agreement : Agreement or None
    agreement_by_tag : mapping of str to Agreement
        Where items have tags; ``agreement`` is then None.
    n_disputed, n_decided : int
        Items with different classes that nobody has decided, and those that were decided.
    accuracies : mapping
        As of `Accuracies.state`.
    begin : str
        UTC, of the first record.
    hours_left : float or None
        Time of work of one person for all items without a label, at the pace until now.
    """

    n_items: int
    n_known: int
    n_labelled: int
    people: tuple[Person, ...]
    growth: Mapping[str, list[tuple[float, int]]]
    expected: list[tuple[float, float]]
    audits: list[dict[str, Any]]
    agreement: Agreement | None
    agreement_by_tag: Mapping[str, Agreement]
    n_disputed: int
    n_decided: int
    accuracies: Mapping[str, Any]
    begin: str
    hours_left: float | None


def campaign_of(
    records: Sequence[Record],
    n_items: int,
    given: Mapping[int, str] | None = None,
    accuracies: Mapping[str, Any] | None = None,
    has_tags: bool = False,
) -> Campaign:
    """Return a campaign by the records of its file.

    Parameters
    ----------
    records : sequence of Record
    n_items : int
    given : mapping of int to str, optional
        Labels that were known before.
    accuracies : mapping, optional
        As of `Accuracies.state`.
    has_tags : bool, default False
        Whether labels are tags.
    """
    standing, known = Standing(records), dict(given or {})
    begin = records[0].time if records else ""
    labels = {**known, **standing.labels()}
    people = tuple(_person(user, records, standing) for user in _users(records))
    n_given, hours = sum(p.n_labels for p in people), sum(p.hours for p in people)
    n_left = n_items - len(labels)
    shown = [(r.time, r.expected_errors) for r in records if r.expected_errors is not None]
    audits = [summary_of(audit) for audit in standing.audits.values() if audit.predicted]
    return Campaign(
        n_items,
        len(known),
        len(labels),
        people,
        {user: _growth(user, records, begin) for user in _users(records)},
        [(_seconds(begin, time), float(errors)) for time, errors in shown],
        [{**audit, "seconds": _seconds(begin, audit["time"])} for audit in audits],
        None if has_tags else agreement_of(standing),
        agreement_by_tag(standing) if has_tags else {},
        len(standing.disagreements()),
        len({r.row for r in records if r.kind == DECISION and not r.is_undo}),
        accuracies or {"people": [], "n_labels": 0, "failure": None, "busy": False},
        begin,
        n_left * hours / n_given if n_given and hours > 0 else None,
    )


def campaign_of_session(session: Session, accuracies: Mapping[str, Any]) -> Campaign:
    """Return the campaign of a page that is open."""
    store, n_items = session.store, len(session.items)
    return campaign_of(store.records, n_items, session.given, accuracies, store.tags is not None)


def read_campaign(path: str | Path) -> Campaign:
    """Return the campaign of a file of labels, which is only read. Known labels are not in it.

    Raises
    ------
    StorageError
        If the file cannot be read, or is no file of labels.
    """
    from graphuq.labelling.store import FORMAT

    try:
        header, *lines = Path(path).read_bytes().splitlines(keepends=True) or [b""]
        whole = [line for line in lines if line.endswith(b"\n") and line.strip()]
        found: Any = json.loads(header)
        if found["format"] != FORMAT:
            raise ValueError(found["format"])
        records = [Record.from_json(json.loads(line)) for line in whole]
        return campaign_of(records, int(found["items"]), has_tags="tags" in found)
    except OSError as error:
        raise StorageError(f"cannot read '{path}' ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StorageError(
            f"'{path}' is not a whole file of labels; name labels.jsonl of graphuq label"
        ) from None


def campaign_lines(campaign: Campaign) -> list[str]:
    """Return a campaign as lines of text."""
    c = campaign
    lines = [f"{c.n_labelled} of {c.n_items} items have a label"]
    if c.hours_left is not None:
        left = duration(3600 * c.hours_left)
        lines.append(f"all others by hand: {left} of one person at this pace")
    for p in c.people:
        pace = "" if p.seconds is None else f", {duration(p.seconds)} a label"
        work = duration(3600 * p.hours)
        lines.append(f"{p.user}: {p.n_labels} labels, {p.n_undone} undone{pace}, {work}")
    if c.agreement is not None:
        lines.append(f"agreement: {_in_words(c.agreement)}")
    for name, agreement in c.agreement_by_tag.items():
        lines.append(f"agreement about {name}: {_in_words(agreement)}")
    lines.append(f"{c.n_disputed} items have different labels and no decision")
    for audit in c.audits:
        found = audit["result"]
        if found is not None:
            lines.append(
                f"audit of {audit['time'][:10]}: {found['n_right']} of {found['n_answers']} right, "
                f"accuracy {found['accuracy']:.1%} "
                f"(90 % interval {found['lower']:.1%} to {found['upper']:.1%})"
            )
    return lines


def duration(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None:
        return "–"
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {name}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def _in_words(agreement: Agreement) -> str:
    alpha, lower, upper, n = agreement
    return f"alpha {alpha:.2f} (90 % interval {lower:.2f} to {upper:.2f}), {n} items"


def log_table(records: Sequence[Record]) -> "pd.DataFrame":
    """Return all records as a table, a row for each."""
    require_extra("label")
    import pandas as pd

    names = [field.name for field in dataclasses.fields(Record)]
    return pd.DataFrame([dataclasses.asdict(r) for r in records], columns=names, dtype=object)


def _users(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(r.user for r in records if r.kind in GIVES_LABEL))


def _person(user: str, records: Sequence[Record], standing: Standing) -> Person:
    own = [r for r in records if r.user == user and r.kind in GIVES_LABEL]
    times = sorted({r.time for r in own})
    gaps = np.diff([datetime.fromisoformat(time).timestamp() for time in times])
    work = gaps[gaps <= BREAK_S]
    return Person(
        user,
        sum(user in by for by in standing.readings().values()),
        sum(r.is_undo for r in own),
        float(np.median(work)) if len(work) else None,
        float(work.sum()) / 3600,
        times[0],
        times[-1],
    )


def _growth(user: str, records: Sequence[Record], begin: str) -> list[tuple[float, int]]:
    """Return the number of rows with a label of a person after each of its acts."""
    rows: set[int] = set()
    found: list[tuple[float, int]] = []
    for record in records:
        if record.user != user or record.kind not in GIVES_LABEL or record.kind == DECISION:
            continue
        if record.label is None:
            rows.discard(record.row)
        else:
            rows.add(record.row)
        found.append((_seconds(begin, record.time), len(rows)))
    return found


def _seconds(begin: str, time: str) -> float:
    return (datetime.fromisoformat(time) - datetime.fromisoformat(begin)).total_seconds()
