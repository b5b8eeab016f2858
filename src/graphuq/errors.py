"""Errors and warnings; every error names the argument, the value and the remedy.

Each class has a code for programs, which stays if the class is renamed.
"""

from typing import ClassVar

__all__ = [
    "DisconnectedGraphWarning",
    "FarRowsWarning",
    "FeatureScaleWarning",
    "GraphRepairWarning",
    "GraphuqError",
    "GraphuqWarning",
    "ImproperPriorWarning",
    "IncompatibleParts",
    "InvalidInput",
    "MissingLabelWarning",
    "MissingPackage",
    "NotConvergedWarning",
    "StorageError",
    "TruncationWarning",
    "UnlabelledScoreWarning",
]

MAX_MESSAGE = 280  # characters of a message, so that a line of the command line has at most 300
MIN_PROBLEM = 60  # characters that a remedy leaves to the problem


def shortened(text: str, length: int) -> str:
    """Return a text, without its middle if it is longer than a number of characters.

    Examples
    --------
    >>> shortened("a word of many letters", 13)
    'a word … ters'
    """
    if len(text) <= length:
        return text
    head = 2 * (length - 3) // 3
    return f"{text[:head].rstrip()} … {text[len(text) - (length - 3 - head) :].lstrip()}"


class GraphuqError(ValueError):
    """Base of all errors that graphuq raises on purpose; a ``ValueError``.

    A message has at most `MAX_MESSAGE` characters, whatever value it quotes.

    Attributes
    ----------
    code : str
        Code of the class, for programs, such as "invalid-input".
    argument : str or None
        Name of the argument, as the user typed it, where the error is about one.
    problem : str
        What is wrong; the whole message, where the remedy is not apart.
    remedy : str or None
        What to do instead, where it is apart.
    """

    code: ClassVar[str] = "graphuq-error"
    argument: str | None = None
    remedy: str | None = None

    def __init__(self, message: str = "") -> None:
        self.problem = shortened(str(message), MAX_MESSAGE)
        super().__init__(self.problem)


class InvalidInput(GraphuqError):
    """Argument that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument as the user typed it.
    problem : str
        Value of the argument and what is wrong with it.
    remedy : str
        What to do instead, in the imperative.
    """

    code = "invalid-input"
    argument: str
    remedy: str

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        name = shortened(argument, MIN_PROBLEM)
        left = MAX_MESSAGE - len(name) - 4
        what = shortened(problem, max(MIN_PROBLEM, left - len(remedy)))
        super().__init__(f"{name}: {what}; {shortened(remedy, left - len(what))}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[str, str, str]]:
        """Return the three parts from which another process rebuilds the error."""
        return type(self), (self.argument, self.problem, self.remedy)


class IncompatibleParts(GraphuqError):
    """Two valid parts that do not work together."""

    code = "incompatible-parts"


class StorageError(GraphuqError):
    """File that cannot be read or written, or whose content is not as expected."""

    code = "storage-error"


class MissingPackage(GraphuqError, ImportError):
    """Package that a feature needs and that is not installed; also an ``ImportError``.

    Parameters
    ----------
    package : str
        Name by which the package is installed.
    extra : str
        Extra of graphuq that installs it.
    """

    code = "missing-package"

    def __init__(self, package: str, extra: str) -> None:
        problem = f"the package {package} is not installed"
        remedy = f"run pip install 'graphuq[{extra}]'"
        super().__init__(f"{problem}; {remedy}")
        self.package, self.extra = package, extra
        self.problem, self.remedy = problem, remedy

    def __reduce__(self) -> tuple[type["MissingPackage"], tuple[str, str]]:
        """Return the two parts from which another process rebuilds the error."""
        return type(self), (self.package, self.extra)


class GraphuqWarning(UserWarning):
    """Base of all warnings of graphuq.

    Attributes
    ----------
    code : str
        Code of the class, for programs, such as "not-converged".
    """

    code: ClassVar[str] = "graphuq-warning"


class DisconnectedGraphWarning(GraphuqWarning):
    """Graph with several connected components, between which labels carry no information."""

    code = "disconnected-graph"


class GraphRepairWarning(GraphuqWarning):
    """Graph whose weights were usable only after a small change, which the message names."""

    code = "graph-repair"


class ImproperPriorWarning(GraphuqWarning):
    """Prior of infinite mass, under which the posterior may be improper."""

    code = "improper-prior"


class TruncationWarning(GraphuqWarning):
    """Series that needs more eigenvectors than were computed."""

    code = "truncation"


class NotConvergedWarning(GraphuqWarning):
    """Result that has not converged; the message says what to do."""

    code = "not-converged"


class MissingLabelWarning(GraphuqWarning):
    """Rows have a class whose name often means "no label": it is asked about, or left out."""

    code = "missing-label"


class UnlabelledScoreWarning(GraphuqWarning):
    """A score was asked for rows without labels, which it leaves out."""

    code = "unlabelled-score"


class FeatureScaleWarning(GraphuqWarning):
    """Features have such different scales that a few of them decide all distances."""

    code = "feature-scale"


class FarRowsWarning(GraphuqWarning):
    """New rows are far from the graph, or have values far outside those of the fit."""

    code = "far-rows"


def require(condition: object, argument: str, problem: str, remedy: str) -> None:
    """Raise `InvalidInput` unless ``condition`` is true."""
    if not condition:
        raise InvalidInput(argument, problem, remedy)
