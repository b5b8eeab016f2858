"""Value classes of the verdict: one `Check` per question, and `Trust` for all of them."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

Level = Literal["green", "amber", "red"]

LEVELS: tuple[Level, ...] = ("green", "amber", "red")  # from the best to the worst
MARKS: dict[Level, str] = {"green": "✓", "amber": "!", "red": "✗"}
HEADLINES: dict[Level, str] = {
    "green": "every check of the answer holds",
    "amber": "rely on the answer with care",
    "red": "do not rely on the answer",
}


@dataclasses.dataclass(frozen=True)
class Check:
    """Outcome of one check of a result.

    Attributes
    ----------
    value, bound : float or None
        The number that was compared, and what it was compared with. A number is None if it was
        not computed.
    level : {"green", "amber", "red"}
        "green" if the check holds. A check that cannot be computed is "amber".
    sentence : str
        What was found, with the remedy if the check fails.
    """

    value: float | None
    bound: float | None
    level: Level
    sentence: str

    @property
    def ok(self) -> bool:
        """Whether the check holds."""
        return self.level == "green"

    @property
    def mark(self) -> str:
        """A sign of the level, for readers who do not see its colour."""
        return MARKS[self.level]


@dataclasses.dataclass(frozen=True)
class Trust:
    """Verdict on a result, from its convergence and from its trustworthiness.

    Attributes
    ----------
    checks : dict of str to Check
        Outcome of every check, by name: "convergence", "labels_per_class", "evidence",
        "certainty", "class_shares", "agreement", "truncation" and "components". The report and the
        command line add "calibration" where true classes are known.
    """

    checks: Mapping[str, Check]

    @property
    def level(self) -> Level:
        """The worst level of all checks; "green" only if every check holds."""
        return max((check.level for check in self.checks.values()), key=LEVELS.index)

    @property
    def mark(self) -> str:
        """A sign of the level, as that of a check."""
        return MARKS[self.level]

    @property
    def reasons(self) -> list[str]:
        """Sentences of the checks that fail, the worst first."""
        failed = [check for check in self.checks.values() if not check.ok]
        failed.sort(key=lambda check: -LEVELS.index(check.level))
        return [check.sentence for check in failed]

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return f"Verdict: {self.level.upper()} ({HEADLINES[self.level]})."

    def _repr_html_(self) -> str:
        from graphuq.results.trust.verdict_html import trust_html

        return trust_html(self)

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"- {reason}" for reason in self.reasons)])


def not_computed(question: str, reason: object) -> Check:
    """Return the outcome of a check that cannot be computed, which is amber."""
    return Check(None, None, "amber", f"{question} was not computed: {reason}.")
