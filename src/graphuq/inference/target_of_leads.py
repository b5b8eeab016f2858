"""Labels of several classes as binary labels of leads, for expectation propagation."""

import numpy as np

from graphuq.errors import IncompatibleParts
from graphuq.inference.base import SiteTarget
from graphuq.likelihoods import Probit
from graphuq.posterior.field import ClassDifferenceField
from graphuq.posterior.target import Target


def target_of_leads(target: SiteTarget) -> Target:
    """Return each multiclass label as K − 1 binary labels of leads with shared noise.

    Raises
    ------
    IncompatibleParts
        If the likelihood is no probit of pairs of a fixed number of classes, or the field has a
        tail.
    """
    likelihood = target.likelihood
    if likelihood.has_soft_labels:
        raise IncompatibleParts(
            "expectation propagation takes soft labels of two classes only; sample, as "
            'inference="auto" does'
        )
    noise_std = likelihood.probit_noise_std
    if noise_std is None or likelihood.learnt:
        raise IncompatibleParts(
            f"expectation propagation needs a probit of pairs of classes, and {likelihood} has "
            "none; use Probit or Softmax of a fixed number of classes, or sample"
        )
    if not target.field.one_class.is_low_rank:
        raise IncompatibleParts(
            "expectation propagation of several classes needs a field without a tail, or with "
            "fewer labels than eigenpairs; compute the spectrum with tail_eigenvalue=False"
        )
    leads = ClassDifferenceField.of(target.field, target.labels, float(noise_std))
    n_sites = len(target.labels) * (leads.n_classes - 1)
    return Target(leads, Probit(float(noise_std)), np.ones(n_sites))
