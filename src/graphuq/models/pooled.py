"""Experts from outside, such as a forest or a foundation model, averaged with a model."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, require
from graphuq.models.auto import Auto
from graphuq.models.base import Model
from graphuq.models.labels import Labels
from graphuq.posterior.experts import Expert
from graphuq.posterior.posterior import Posterior
from graphuq.spectrum import Basis, Functions, Laplacian, SpectralBasis
from graphuq.utils.serialization import class_named

FEW_LABELS, N_FOLDS = 30, 10  # up to so many labels each is left out alone; folds of more
PATH = ":"  # in text that says where a class is, such as "sklearn.svm:SVC"


@dataclass(frozen=True, repr=False)
class Pooled(Model):
    """Average over a model and experts: classifiers that see features and labels, and no graph.

    Each expert is fitted to the labelled rows. Its probabilities are averaged with those of the
    model, with weights by the probabilities of labels that were left out; see
    `graphuq.results.expert_weights`. Numbers of the field u, such as intervals, are those of the
    model. At new rows an expert has the mean over their neighbours, as the columns of the basis
    have, so that files need not hold it. An expert knows nothing of rows without labels.

    Parameters
    ----------
    experts : sequence
        Classifiers with ``fit`` and ``predict_proba``, as in scikit-learn; or functions
        ``f(X_train, y_train, X)`` that return probabilities of the classes of ``y_train``, in
        ascending order, shape (M, classes). Classes are codes from 0. Text names a class that is
        imported and made without arguments: "sklearn.ensemble:RandomForestClassifier". Other text
        is the name of an expert that a file did not hold; it cannot be fitted.
    model : Model, default Auto()

    Raises
    ------
    InvalidInput
        If there is no expert, or one is none of these.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from sklearn.linear_model import LogisticRegression
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> model = gq.models.Pooled([LogisticRegression()])
    >>> classifier = gq.GraphClassifier(model=model, inference="expectation-propagation")
    >>> classifier.fit(moons.features, y).predict_proba(moons.features).shape
    (200, 2)
    """

    experts: Any
    model: Model = field(default_factory=Auto)

    def __post_init__(self) -> None:
        single = isinstance(self.experts, str) or not isinstance(self.experts, Sequence)
        remedy = "give a list of classifiers with fit and predict_proba, or of functions"
        require(not single and len(self.experts) > 0, "experts", f"{self.experts!r}", remedy)
        require(isinstance(self.model, Model), "model", f"{self.model!r}", "give a gq.models.Model")
        object.__setattr__(self, "experts", tuple(self.experts))
        for expert in self.experts:
            known = isinstance(expert, str) or _is_classifier(expert) or callable(expert)
            require(known and not isinstance(expert, type), "experts", f"{expert!r}", remedy)

    def check(self, labels: Labels) -> None:
        """Raise `IncompatibleParts` for labels that experts cannot be fitted to."""
        if labels.distributions is not None or labels.has_unseen_classes:
            raise IncompatibleParts(
                "experts need certain labels of a known number of classes; leave soft labels and "
                "max_classes out, or use a model without experts"
            )
        if labels.weights is not None and (labels.weights != 1).any():
            raise IncompatibleParts(
                "experts take no weights of labels; leave them out, or use a model without experts"
            )
        self.model.check(labels)

    def select(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Model:
        """Return the average with the model that is used for these labels."""
        return replace(self, model=self.model.select(basis, labels))

    @property
    def needs_features(self) -> bool:
        """Whether the basis must hold the features of all rows: experts see them."""
        return True

    def used(self, posterior: Posterior) -> Model:
        """Return the average with everything that the labels chose as numbers."""
        return replace(self, model=self.model.used(posterior))

    @property
    def uses_blocks(self) -> bool:
        """Whether blocks of the basis beside its eigenpairs are part of the model."""
        return True

    def posterior(self, basis: SpectralBasis | Laplacian, labels: Labels) -> Posterior:
        """Return the model's posterior with the experts' answers; see `Model.posterior`."""
        self.check(labels)
        features = basis.features if isinstance(basis, Basis) else None
        if features is None:
            raise IncompatibleParts(
                "experts need features, and this basis has none: make the graph from features, "
                "and leave tail_eigenvalue out"
            )
        self._check_present()
        found = self.model.posterior(basis, labels)
        own: Any = found.spectrum
        blocks, experts = list(own.blocks), []
        for name, expert in zip(self._names, self.experts, strict=True):
            probabilities = _predicted(expert, name, features, labels, slice(None), slice(None))
            blocks.append(Functions(name, probabilities))
            experts.append(Expert(name, _withheld(expert, name, features, labels)))
        spectrum = own.spectrum if isinstance(own, Basis) else own
        whole = Basis(spectrum, tuple(blocks))
        return replace(found, spectrum=whole, experts=tuple(experts))

    def _check_present(self) -> None:
        """Raise `InvalidInput` if an expert is the name of one that a file did not hold."""
        for expert in self.experts:
            require(
                not isinstance(expert, str) or PATH in expert,
                "experts",
                f"{expert!r} is the name of an expert that the file does not hold",
                f"set model=gq.models.Pooled([...]) with {expert} again",
            )

    @property
    def _names(self) -> list[str]:
        """Names of the experts: those of their classes, numbered where they occur again."""
        names: list[str] = []
        for expert in self.experts:
            own = _name_of(expert)
            taken = sum(name == own or name.startswith(own + " ") for name in names)
            names.append(f"{own} {taken + 1}" if taken else own)
        return names

    def stored_fields(self) -> dict[str, Any]:
        """Return what a file holds: the names of the experts, and the model."""
        given = zip(self._names, self.experts, strict=True)
        names = [e if isinstance(e, str) else name for name, e in given]
        return {"experts": names, "model": self.model}


def _is_classifier(expert: Any) -> bool:
    return hasattr(expert, "fit") and hasattr(expert, "predict_proba")


def _name_of(expert: Any) -> str:
    """Return the name of the class of an expert, of the last step of a pipeline, or a function."""
    if isinstance(expert, str):
        return expert.rpartition(PATH)[2]
    if hasattr(expert, "steps"):
        return _name_of(expert.steps[-1][1])
    return str(getattr(expert, "__name__", type(expert).__name__))


def _withheld(expert: Any, name: str, features: Any, labels: Labels) -> Float[np.ndarray, "J K"]:
    """Return an expert's probabilities of each labelled row, fitted without it."""
    found = np.zeros((len(labels.codes), labels.n_classes))
    for train, test in _folds(labels.codes):
        found[test] = _predicted(expert, name, features, labels, train, labels.nodes[test])
    return found


def _folds(codes: Int[np.ndarray, " J"]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows to fit and rows to predict: each alone if there are few, or ten folds."""
    from sklearn.model_selection import LeaveOneOut, StratifiedKFold

    if len(codes) <= FEW_LABELS:
        return list(LeaveOneOut().split(codes))
    folds = StratifiedKFold(min(N_FOLDS, np.bincount(codes).max()), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer labels than there are folds
        return list(folds.split(codes, codes))


def _predicted(
    expert: Any, name: str, features: Any, labels: Labels, train: Any, rows: Any
) -> Float[np.ndarray, "M K"]:
    """Return the probabilities of all classes at rows, by an expert fitted to some labels."""
    X, codes = features[labels.nodes[train]], labels.codes[train]
    known = np.unique(codes)
    if len(known) == 1:  # there is nothing to learn, and many classifiers refuse
        answer = np.ones((len(np.arange(features.shape[0])[rows]), 1))
    else:
        answer = _answer(expert, name, X, codes, features[rows])
    good = answer.ndim == 2 and answer.shape[1] == len(known) and np.isfinite(answer).all()
    require(
        bool(good) and bool((answer >= 0).all()) and bool((answer.sum(axis=1) > 0).all()),
        "experts",
        f"{name} returned {np.shape(answer)} numbers that are no probabilities of "
        f"{len(known)} classes",
        "let it return one row for each row of X, and one column for each class",
    )
    found = np.zeros((len(answer), labels.n_classes))
    found[:, known] = answer / answer.sum(axis=1, keepdims=True)
    return found


def _answer(expert: Any, name: str, X: Any, codes: Int[np.ndarray, " J"], rows: Any) -> Any:
    """Return what an expert says of rows, after it saw X and their codes."""
    from sklearn.base import clone

    if isinstance(expert, str):
        expert = class_named(expert, may_import=True)()
        require(_is_classifier(expert), "experts", f"{name} is no classifier", "name another")
    if not _is_classifier(expert):
        return np.asarray(expert(X, codes, rows), dtype=np.float64)
    return np.asarray(clone(expert, safe=False).fit(X, codes).predict_proba(rows), dtype=np.float64)
