"""Shares of the classes in groups of nodes, such as patches of a tissue or fields of a scene."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import Point
from graphuq.results.compositions import compositions, in_groups
from graphuq.results.errors_left import N_DRAWS
from graphuq.results.joint_labels import joint_labels
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.results.result import Result

MAX_NODES = 500  # nodes of a group that are drawn together; of a larger group, a random sample
BATCH_NODES = 2_000  # nodes of groups that are drawn at a time


class GroupShares(NamedTuple):
    """Share of each class among the nodes of each group.

    Attributes
    ----------
    groups : numpy.ndarray, shape (G,)
        Names of the groups, sorted.
    counts : numpy.ndarray of int, shape (G,)
        Nodes of each.
    expected, lower, upper : numpy.ndarray, shape (G, K)
        Expected shares, and the ends of an interval for each.
    classes : tuple of length K
        Names of the classes.
    """

    groups: np.ndarray
    counts: Int[np.ndarray, " G"]
    expected: Float[np.ndarray, "G K"]
    lower: Float[np.ndarray, "G K"]
    upper: Float[np.ndarray, "G K"]
    classes: tuple[Any, ...]

    def to_dataframe(self) -> "pd.DataFrame":
        """Return a table with a row for each class of each group."""
        require_extra("tables")
        import pandas as pd

        n_classes, n_groups = len(self.classes), len(self.groups)
        return pd.DataFrame(
            {
                "group": np.repeat(self.groups, n_classes),
                "class": list(self.classes) * n_groups,
                "n_rows": np.repeat(self.counts, n_classes),
                "share": self.expected.ravel(),
                "lower": self.lower.ravel(),
                "upper": self.upper.ravel(),
            }
        )


def group_shares(
    result: "Result", groups: ArrayLike, probability: float = 0.9, *, unseen: float = 0.0
) -> GroupShares:
    """Return the share of each class among the nodes of each group, with an interval.

    The expected share is the mean probability. Similar nodes are right or wrong together, so the
    interval comes from 500 joint draws of all labels: a node has each class in its share of the
    draws, in those where the field of the class leads most. An interval as if nodes were
    independent would be much too narrow. It is about the classes of these nodes, and trusts the
    model; shares of one class that are estimated from unlabelled nodes
    (`graphuq.results.estimated_shares`) count as known.

    Groups may differ in what they consist of, and the model may not see it: patches of a tissue are
    no groups to a graph of expression. ``unseen=1`` says so. Then each group has an unknown
    composition, and how much compositions differ is found from the probabilities themselves
    (docs/theory/answers.md, "Groups that the model does not see"). Features of a class must be
    alike in all groups: do not use it for groups that were made from the features, such as
    clusters.

    Parameters
    ----------
    result : Result
        From draws or a Gaussian approximation, expectation propagation included.
    groups : array_like, shape (N,)
        Group of each node: texts or numbers. None or NaN: in no group.
    probability : float, default 0.9
        Of each interval, in (0, 1).
    unseen : float, default 0
        Probability that the model does not see the groups, in [0, 1].

    Returns
    -------
    GroupShares

    Raises
    ------
    InvalidInput
        If there is not one group a node, no node has one, or a number is out of range.
    IncompatibleParts
        If the result is a point, which has no draws.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.full(200, -1)
    >>> y[:10] = moons.classes[:10]
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> fitted = classifier.fit(moons.features, y)
    >>> right = moons.features[:, 0] > 0.5
    >>> shares = gq.results.group_shares(fitted.result_, np.where(right, "right", "left"))
    >>> shares.groups.tolist(), shares.expected.shape
    (['left', 'right'], (2, 2))
    >>> bool((shares.lower <= shares.expected).all() and (shares.expected <= shares.upper).all())
    True
    """
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    if isinstance(result.answer, Point):
        raise IncompatibleParts(
            f"{result.answer.description} gives a point without draws; use "
            'inference="expectation-propagation"'
        )
    require(0 <= unseen <= 1, "unseen", f"{unseen!r}", "use a number in [0, 1]")
    p, names = result.probabilities, np.asarray(groups, dtype=object)
    require(
        names.shape == (len(p),),
        "groups",
        f"shape {names.shape} for {len(p)} nodes",
        "give the group of each node",
    )
    inside = np.array([name is not None and name == name for name in names], dtype=bool)
    require(inside.any(), "groups", "no node is in one", "name the group of some nodes")
    found, of_group = np.unique(names[inside], return_inverse=True)
    nodes, rng = np.flatnonzero(inside), np.random.default_rng(0)
    members = [nodes[of_group == g] for g in range(len(found))]
    drawn = [_at_most(own, rng) for own in members]
    moved, shifts = _in_compositions([p[own] for own in drawn], unseen, rng)
    # A sample of a large group has another mean than the group.
    expected = np.stack([p[own].mean(axis=0) for own in members])
    expected += np.stack([new.mean(axis=0) - p[own].mean(axis=0)
                          for new, own in zip(moved, drawn, strict=True)])  # fmt: skip
    means = np.stack([new.mean(axis=0) for new in moved])
    shares = np.stack(list(_draws_of_shares(result, drawn, moved, rng)))  # (G, S, K)
    shares = np.clip(shares + (expected - means)[:, None] + shifts, 0.0, 1.0)
    tail = (1 - probability) / 2
    lower, upper = np.quantile(shares, [tail, 1 - tail], axis=1)
    lower, upper = np.minimum(lower, expected), np.maximum(upper, expected)
    classes = tuple(result.classes.tolist())
    return GroupShares(found, np.bincount(of_group), expected, lower, upper, classes)


def _at_most(nodes: Int[np.ndarray, " n"], rng: np.random.Generator) -> Int[np.ndarray, " m"]:
    """Return the nodes of a group, or a random sample of a large one."""
    return nodes if len(nodes) <= MAX_NODES else rng.choice(nodes, MAX_NODES, replace=False)


def _in_compositions(
    p: list[Float[np.ndarray, "n K"]], unseen: float, rng: np.random.Generator
) -> tuple[list[Float[np.ndarray, "n K"]], Float[np.ndarray, "G S K"]]:
    """Return class probabilities given what groups consist of, and what draws of that add."""
    shifts = np.zeros((len(p), N_DRAWS, p[0].shape[1]))
    if unseen == 0:
        return p, shifts
    every, of_group = np.concatenate(p), np.repeat(np.arange(len(p)), [len(own) for own in p])
    moved, counts = np.zeros(every.shape), np.bincount(of_group)[:, None]
    for s, ratios in enumerate(compositions(every, of_group, N_DRAWS, rng)):
        # Components that see the groups have the probabilities that are reported.
        new = in_groups(every, ratios, of_group) if rng.random() < unseen else every
        moved += new / N_DRAWS
        np.add.at(shifts[:, s], of_group, new)
    shifts = shifts / counts[:, None]
    return np.split(moved, np.cumsum(counts)[:-1]), shifts - shifts.mean(axis=1, keepdims=True)


def _batches(groups: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield groups that are drawn at a time, of at most `BATCH_NODES` nodes together."""
    batch: list[np.ndarray] = []
    for own in groups:
        if batch and sum(map(len, batch)) + len(own) > BATCH_NODES:
            yield batch
            batch = []
        batch.append(own)
    yield batch


def _draws_of_shares(
    result: "Result",
    groups: list[np.ndarray],
    probabilities: list[np.ndarray],
    rng: np.random.Generator,
) -> Iterator[Float[np.ndarray, "S K"]]:
    """Yield the share of each class in each group, in joint draws."""
    codes = np.arange(result.probabilities.shape[1])
    p = np.concatenate(probabilities)
    for batch in _batches(groups):
        nodes = np.concatenate(batch)
        labels = joint_labels(result, nodes, N_DRAWS, rng, p[: len(nodes)])
        p = p[len(nodes) :]
        for own in np.split(labels, np.cumsum([len(own) for own in batch])[:-1]):
            yield (own[:, :, None] == codes).mean(axis=0)
