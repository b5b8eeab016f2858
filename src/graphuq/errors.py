"""Errors and warnings; every error names the argument, the value and the remedy."""


class GraphuqError(ValueError):
    """Base of all errors that graphuq raises on purpose; a ``ValueError``."""


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

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        super().__init__(f"{argument}: {problem}; {remedy}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[str, str, str]]:
        """Return the three parts from which another process rebuilds the error."""
        return type(self), (self.argument, self.problem, self.remedy)


class IncompatibleParts(GraphuqError):
    """Two valid parts that do not work together."""


class StorageError(GraphuqError):
    """File that cannot be read or written, or whose content is not as expected."""


class GraphuqWarning(UserWarning):
    """Base of all warnings of graphuq."""


class DisconnectedGraphWarning(GraphuqWarning):
    """Graph with several connected components, between which labels carry no information."""


class GraphRepairWarning(GraphuqWarning):
    """Graph whose weights were usable only after a small change, which the message names."""


class ImproperPriorWarning(GraphuqWarning):
    """Prior of infinite mass, under which the posterior may be improper."""


class TruncationWarning(GraphuqWarning):
    """Series that needs more eigenvectors than were computed."""


class NotConvergedWarning(GraphuqWarning):
    """Result that has not converged; the message says what to do."""


class MissingLabelWarning(GraphuqWarning):
    """Most rows have a class whose name often means "no label"."""


class UnlabelledScoreWarning(GraphuqWarning):
    """A score was asked for rows without labels, which it leaves out."""


class FeatureScaleWarning(GraphuqWarning):
    """Features have such different scales that a few of them decide all distances."""


class FarRowsWarning(GraphuqWarning):
    """New rows are so far from the graph that nothing is known about them."""


def require(condition: object, argument: str, problem: str, remedy: str) -> None:
    """Raise `InvalidInput` unless ``condition`` is true."""
    if not condition:
        raise InvalidInput(argument, problem, remedy)
