"""What a user can be told: every error names the argument, the value and the remedy."""

from typing import Any


class GraphuqError(ValueError):
    """Base of all errors that graphuq raises on purpose; a ``ValueError``."""


class InvalidInput(GraphuqError):
    """An argument that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument as the user typed it.
    problem : str
        What is wrong with its value, the value included.
    remedy : str
        What to do instead.
    """

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        super().__init__(f"{argument}: {problem}; {remedy}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[str, str, str]]:
        """Rebuild from its three parts, so that it survives a process boundary."""
        return type(self), (self.argument, self.problem, self.remedy)


class IncompatibleParts(GraphuqError):
    """Two parts, each valid, that do not work together."""


class StorageError(GraphuqError):
    """A file that cannot be read, written or trusted."""


class GraphuqWarning(UserWarning):
    """Base of all warnings of graphuq."""


class DisconnectedGraphWarning(GraphuqWarning):
    """The graph falls apart, so evidence does not reach every node."""


class GraphRepairWarning(GraphuqWarning):
    """The weights were usable only after a small change, which is named."""


class ImproperPriorWarning(GraphuqWarning):
    """A prior of infinite mass, under which the posterior may have no meaning."""


class TruncationWarning(GraphuqWarning):
    """A series wanted more eigenvectors than were computed."""


class NotConvergedWarning(GraphuqWarning):
    """The numbers are not yet to be trusted; says what to do."""


def require(condition: Any, argument: str, problem: str, remedy: str) -> None:
    """Raise `InvalidInput` unless ``condition`` holds."""
    if not condition:
        raise InvalidInput(argument, problem, remedy)
