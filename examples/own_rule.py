"""An acquisition rule of your own: doubt, spread over the graph."""

import dataclasses

import numpy as np

import graphuq as gq


@dataclasses.dataclass(frozen=True)
class Doubt(gq.acquisition.Rule):
    """Score ``(1 − p₁)^power``, where p₁ is the largest class probability of a row."""

    power: float = 1.0

    def scores(self, pool):
        """Return a number for each candidate; the largest is labelled first."""
        return (1 - pool.probabilities.max(axis=1)) ** self.power


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.15, rng=1)
    y = np.where(np.arange(200) < 10, moons.classes, -1)
    for rule in ("random", Doubt()):
        classifier = gq.GraphClassifier(
            model="largest-evidence", inference="expectation-propagation"
        ).fit(moons.features, y)
        for _ in range(4):
            rows = classifier.query(5, rule)
            classifier.add_labels(rows, moons.classes[rows])
        right = (classifier.transduction_ == moons.classes).mean()
        print(f"{rule}: accuracy {right:.3f} with 20 more labels")
