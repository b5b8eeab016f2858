"""Chains of the people who read and of the items that they read, given the rest of a model."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from graphuq.inference.collapsed_gibbs.reading_prior import ReadingPrior

N_FIRST = 20  # sweeps that begin at the votes
VOTE = 0.3  # added to the votes for each class, so that no class is excluded at the start


class ReadingDraws(NamedTuple):
    """What chains of people and items found; S draws of all chains.

    Attributes
    ----------
    members : numpy.ndarray, shape (J, K)
        Probability of each class of each item.
    errors : numpy.ndarray, shape (J, K)
        Its Monte-Carlo error, by the means of chains; 0 for one chain.
    accuracy : numpy.ndarray, shape (C, S, A)
        Probability that a person is right on an item like these.
    share_right : numpy.ndarray, shape (C, S, A)
        Share of right ones among the readings of a person.
    confusion : numpy.ndarray, shape (A, K, K)
        Posterior mean of the probability of each reading given the class.
    difficulty : numpy.ndarray, shape (K,)
        Posterior mean of σ.
    """

    members: Float[np.ndarray, "J K"]
    errors: Float[np.ndarray, "J K"]
    accuracy: Float[np.ndarray, "C S A"]
    share_right: Float[np.ndarray, "C S A"]
    confusion: Float[np.ndarray, "A K K"]
    difficulty: Float[np.ndarray, " K"]


class ReadingSampler:
    """A chain of people and items, to which something else gives class probabilities of the items.

    Parameters
    ----------
    readings : numpy.ndarray of int, shape (J, A)
        Class that each person read at each item; −1 for none.
    n_classes : int
        K.
    rng : numpy.random.Generator
    prior : ReadingPrior, optional
        By default ``ReadingPrior.of(n_classes)``.
    """

    def __init__(
        self,
        readings: Int[np.ndarray, "J A"],
        n_classes: int,
        rng: np.random.Generator,
        prior: ReadingPrior | None = None,
    ) -> None:
        from graphuq.inference.collapsed_gibbs.reading_sweeps import People  # late: Numba

        items, self.who = np.nonzero(readings >= 0)
        self.said = np.ascontiguousarray(readings[items, self.who], dtype=np.int64)
        self.items, self.n_items, self.n_classes = items, len(readings), n_classes
        self.starts = np.searchsorted(items, np.arange(self.n_items + 1))
        self.prior = ReadingPrior.of(n_classes) if prior is None else prior
        self.rng, self.n_people = rng, readings.shape[1]
        self.people: Any = People.first(self.prior, self.n_people, n_classes)
        self.classes = self.eases = np.zeros(self.n_items, np.int64)
        votes = np.full((self.n_items, n_classes), VOTE)
        np.add.at(votes, (items, self.said), 1.0)
        self.run(np.log(votes / votes.sum(axis=1, keepdims=True)), N_FIRST)

    def run(self, log_shares: Float[np.ndarray, "J K"], n_sweeps: int) -> Float[np.ndarray, "J K"]:
        """Return class probabilities of the items, averaged over sweeps of people.

        Parameters
        ----------
        log_shares : numpy.ndarray, shape (J, K)
            Log probability of each class before the readings.
        n_sweeps : int
        """
        from graphuq.inference.collapsed_gibbs import reading_sweeps  # late: Numba

        members, self.classes, self.eases = reading_sweeps.run(
            self.rng,
            self.starts,
            self.who,
            self.said,
            log_shares,
            self.prior,
            self.people,
            n_sweeps,
        )
        return members

    def alone(self, n_rounds: int, n_sweeps: int) -> Float[np.ndarray, "J K"]:
        """Return what readings say of each item without a graph, for equally probable classes.

        The shares of the classes are unknown, with a uniform distribution. They are drawn once a
        round. Of the rounds, the first third is warm-up.
        """
        shares = (self.n_classes + np.bincount(self.classes, minlength=self.n_classes)) * 1.0
        total = np.zeros((self.n_items, self.n_classes))
        for number in range(n_rounds):
            log_shares = np.log(shares / shares.sum())
            members = self.run(np.tile(log_shares, (self.n_items, 1)), n_sweeps)
            if 3 * number >= n_rounds:
                total += informs(members, log_shares)
            counts = np.bincount(self.classes, minlength=self.n_classes)
            shares = self.rng.dirichlet(1.0 + counts)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def draws(
        self, log_shares: Float[np.ndarray, "J K"], n_draws: int, thin: int, n_warmup: int
    ) -> ReadingDraws:
        """Return draws of one chain, which goes on from where it is."""
        from graphuq.inference.collapsed_gibbs import reading_sweeps  # late: Numba

        self.run(log_shares, n_warmup)
        members = np.zeros((self.n_items, self.n_classes))
        confusion = np.zeros((self.n_people, self.n_classes, self.n_classes))
        accuracy, right = np.empty((2, 1, n_draws, self.n_people))
        difficulty, n_each = (
            np.zeros(self.n_classes),
            np.bincount(self.who, minlength=self.n_people),
        )
        diagonal, weights = np.arange(self.n_classes), np.exp(self.prior.log_eases)
        for s in range(n_draws):
            members += self.run(log_shares, thin) / n_draws
            table = np.exp(reading_sweeps.log_table(self.prior, self.people))
            found = np.einsum("akqr,q->akr", table, weights)
            shares = np.bincount(self.classes, minlength=self.n_classes) / self.n_items
            accuracy[0, s] = found[:, diagonal, diagonal] @ shares
            is_right = self.classes[self.items] == self.said
            right[0, s] = np.bincount(self.who, is_right, self.n_people) / n_each
            confusion += found / n_draws
            difficulty += self.prior.difficulties[self.people.difficulties] / n_draws
        return ReadingDraws(members, np.zeros_like(members), accuracy, right, confusion, difficulty)


def informs(
    members: Float[np.ndarray, "J K"], log_shares: Float[np.ndarray, "*J K"]
) -> Float[np.ndarray, "J K"]:
    """Return class probabilities by the readings alone: those given all, over those before."""
    with np.errstate(divide="ignore"):
        logs = np.log(members) - log_shares
    return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))


def joined(chains: list[ReadingDraws]) -> ReadingDraws:
    """Return the draws of several chains as one."""
    members, _, accuracy, right, confusion, difficulty = zip(*chains, strict=True)
    return ReadingDraws(
        np.mean(members, axis=0),
        np.std(members, axis=0, ddof=1) / np.sqrt(len(members)),
        np.concatenate(accuracy),
        np.concatenate(right),
        np.mean(confusion, axis=0),
        np.mean(difficulty, axis=0),
    )
