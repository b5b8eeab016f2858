"""What a label says about the field: BALD."""

import numpy as np
from jaxtyping import Float
from scipy.special import softmax
from scipy.stats import norm, qmc

from graphuq.acquisition.entropy import entropy
from graphuq.acquisition.pool import SHARPNESS, Pool

LOG2_DRAWS = 6  # 64 points of a Sobol sequence stand for the field at a candidate
BLOCK = 250  # candidates at a time


class MutualInformation:
    r"""Mutual information of a label and the field (Houlsby et al. 2011, BALD).

    The score is ``H(E p(y | u)) − E H(p(y | u))``, in nats. The fields of the classes at a
    candidate are Gaussian with means ``log p_k / β``, up to a constant, and variance v, and
    ``p(y | u)`` is the softmax with the noise of the likelihood. Without noise it is the entropy.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the mutual information for each candidate."""
        sobol = qmc.Sobol(pool.n_classes, seed=np.random.default_rng(0))
        z = norm.ppf(sobol.random_base2(LOG2_DRAWS))
        mean = np.log(pool.probabilities) / pool.sharpness[:, None]
        deviation = np.sqrt(pool.variance)
        found = np.empty(len(mean))
        for k in range(0, len(mean), BLOCK):
            u = mean[k : k + BLOCK, None] + deviation[k : k + BLOCK, None, None] * z
            if pool.noise_std > 0:
                labels = softmax(SHARPNESS / pool.noise_std * u, axis=2)
            else:
                labels = (u == u.max(axis=2, keepdims=True)).astype(np.float64)
            found[k : k + BLOCK] = entropy(labels.mean(axis=1)) - entropy(labels).mean(axis=1)
        return found
