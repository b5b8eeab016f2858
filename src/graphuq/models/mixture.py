"""A finite mixture of priors: a weighted set of posteriors once it meets labels.

The components share basis, likelihood and labels. The number of the true one is an unknown with
prior odds, so that a `Posterior` with a mixture for its prior is the whole weighted set.
"""

import dataclasses
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from graphuq.distributions import Hyperparameter, is_learnt, parameter
from graphuq.errors import IncompatibleParts, require
from graphuq.priors import Modes, Prior, SpectralStd
from graphuq.priors.base import log_deviations
from graphuq.spectrum import SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS, spectrum_of
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import require_positive
from graphuq.utils.part import Part, part_field

Kind = TypeVar("Kind", bound=Part)
FREE = frozenset({"tau", "alpha"})  # hyperparameters on which the modes of a prior do not depend
NO_MODES = frozenset({"include_constant", "truncation"})


class Term(Part):
    """Part of a component: the field of one block of the basis, times a scale.

    Parameters
    ----------
    scale : float
        σ > 0: the field has the variance σ² on average over the nodes.
    prior : Prior, optional
        Prior of the eigenpairs of the block, without anything learnt. None for a block of
        functions, all columns of which have the same variance.
    block : str, default "eigenpairs"
        Name of the block; see `graphuq.Basis`.
    """

    scale: float = part_field(static=True)
    prior: Prior | None = part_field(default=None, static=True)
    block: str = part_field(default=EIGENPAIRS, static=True)

    def __check_init__(self) -> None:
        require_positive("scale", self.scale, "use a positive number")
        require(
            self.block != EIGENPAIRS or self.prior is not None,
            "prior",
            f"None of the block {self.block!r}",
            "give a prior, such as Matern()",
        )
        require(
            self.prior is None or not self.prior.learnt,
            "prior",
            f"{self.prior!r} has learnt hyperparameters",
            "give numbers: the odds of the components take the place of a distribution",
        )

    @property
    def shares_modes(self) -> Any:
        """What terms have in common whose modes are the same."""
        if self.prior is None:
            return self.block
        numbers = {field.name for field in dataclasses.fields(self.prior)} - NO_MODES
        own = (type(self.prior), self.prior.include_constant) if numbers <= FREE else self
        return self.block, own

    def of_functions(self, basis: SpectralBasis) -> Float[np.ndarray, " L"]:
        """Return the standard deviation of each column of a block of functions."""
        own: Any = basis
        taken = np.zeros(basis.n_columns)
        taken[own.columns_of(self.block)] = 1.0
        return np.asarray(np.sqrt(basis.n_nodes / (taken @ basis.energy)) * taken)

    def __repr__(self) -> str:
        if self.prior is None:
            return f"{self.scale:.4g} * {self.block}"
        block = "" if self.block == EIGENPAIRS else f" of the {self.block}"
        return f"{self.scale:.4g} * {self.prior}{block}"


def changed(part: Kind, values: dict[str, Any]) -> Kind:
    """Return a part with other numbers, which are known to be right, without its checks.

    The checks of some hundred parts would take a tenth of a fit.
    """
    new = object.__new__(type(part))
    for field in dataclasses.fields(part):
        value = values.get(field.name, getattr(part, field.name))
        object.__setattr__(new, field.name, value)
    return new


class MixtureModes(Modes):
    """Modes with the standard deviations of each component.

    Attributes
    ----------
    stds : array, shape (M, L)
    tails : array, shape (M,)
        Standard deviations s̄ of the tail.
    """

    stds: Float[Array, "M L"]
    tails: Float[Array, " M"]

    def first(self, n_modes: int) -> "MixtureModes":
        """Return the first modes alone."""
        shorter: Any = super().first(n_modes)
        return dataclasses.replace(shorter, stds=self.stds[:, :n_modes])


class Mixture(Prior):
    """One of M components, each a sum of fields of blocks of the basis.

    The number m of the component is a learnt hyperparameter: its posterior weighs the components.

    Parameters
    ----------
    components : sequence of Term, or of sequences of Term, length M
        The field of a component is the sum of its terms, which are independent.
    component : int or Distribution, default 0
        Number m of the component, from 0, or its distribution, such as `graphuq.Categorical`.

    Raises
    ------
    InvalidInput
        If there is no component, or ``component`` is the number of none.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from graphuq.models import Mixture, Term
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> rough, smooth = gq.priors.Matern(1.0, 2.0), gq.priors.Matern(0.2, 4.0)
    >>> prior = Mixture([Term(3.0, smooth), Term(1.0, rough)], gq.Categorical([0.5, 0.5]))
    >>> sorted(prior.learnt)
    ['component']
    >>> round(float((prior.only(0).spectral_std(spectrum).modes ** 2).sum()), 4)
    81.0
    """

    components: Any = part_field(
        converter=lambda given: tuple(
            (one,) if isinstance(one, Term) else tuple(one) for one in given
        ),
        static=True,
    )
    component: Hyperparameter = parameter(0)
    is_mixture: ClassVar[bool] = True

    def __check_init__(self) -> None:
        terms = [term for terms in self.components for term in terms]
        require(
            len(self.components) > 0
            and all(self.components)
            and all(isinstance(term, Term) for term in terms),
            "components",
            f"{len(self.components)} components of {len(terms)} terms",
            "give terms, such as Term(1.0, Matern())",
        )
        last = self.component.support[1] if is_learnt(self.component) else self.component
        require(
            0 <= last < self.n_components,
            "component",
            f"{self.component!r} beside {self.n_components} components",
            "use one number from 0 for each component",
        )

    @property
    def n_components(self) -> int:
        """Number of components M."""
        return len(self.components)

    @property
    def log_probabilities(self) -> Float[np.ndarray, " M"]:
        """Log prior probability of each component."""
        numbers = np.arange(self.n_components)
        if not is_learnt(self.component):
            return np.where(numbers == self.component, 0.0, -np.inf)
        return self.component.log_probabilities(numbers)

    @property
    def on_features(self) -> Bool[np.ndarray, " M"]:
        """Whether each component has only functions of the features, and no graph."""
        return np.array([all(t.prior is None for t in terms) for terms in self.components])

    @property
    def blocks(self) -> list[str]:
        """Name of the blocks of each component; those of a sum are joined by " + "."""
        return [" + ".join(term.block for term in terms) for terms in self.components]

    def uses(self, block: str) -> Bool[np.ndarray, " M"]:
        """Return which components have a term on a block."""
        return np.array([any(t.block == block for t in terms) for terms in self.components])

    def only(self, number: int) -> "Mixture":
        """Return the prior of one component, without anything learnt."""
        return changed(self, {"component": int(number)})

    def named_draws(self, draws: dict[str, Any]) -> dict[str, Any]:
        """Return hyperparameters of the component of each draw, in place of its number.

        They are those of the first term: numbers of its prior, NaN where it has none of this
        name; ``scale``; and ``on_features``, if any component is.
        """
        if "component" not in draws:
            return draws
        number = np.asarray(draws["component"]).astype(int)
        rows = [_numbers(terms[0]) for terms in self.components]
        names = dict.fromkeys(name for row in rows for name in row)
        found = {name: np.array([row.get(name, np.nan) for row in rows])[number] for name in names}
        found["scale"] = np.array([terms[0].scale for terms in self.components])[number]
        found["include_constant"] = np.array([_has_constant(terms) for terms in self.components])[
            number
        ]
        if self.on_features.any():
            found["on_features"] = self.on_features[number]
        return {name: value for name, value in draws.items() if name != "component"} | found

    def modes(self, spectrum: SpectralBasis) -> MixtureModes:
        """Return eigenvalues, energies, and the standard deviations of each component.

        Raises
        ------
        IncompatibleParts
            If a component needs a block that the basis lacks, and as `Prior.modes`.
        """
        own = {EIGENPAIRS, *(block.name for block in spectrum.blocks)}
        needed = {term.block for terms in self.components for term in terms}
        if missing := sorted(needed - own):
            raise IncompatibleParts(
                f"{self} has components on {', '.join(missing)}, which {spectrum} lacks; "
                "make the basis by graphuq.Basis.of(graph)"
            )
        modes = super().modes(spectrum)
        stds, tails = self._deviations(spectrum)
        fields = {name: getattr(modes, name) for name in Modes.__dataclass_fields__}
        fields["present"] = np.ones(spectrum.n_columns, bool)
        return MixtureModes(**fields, stds=stds, tails=tails)

    def _deviations(self, spectrum: SpectralBasis) -> tuple[Any, Any]:
        """Return the standard deviations of all components, shape (M, L), and of their tails.

        Those of all priors of one kind are computed together.
        """
        variances = np.zeros((self.n_components, spectrum.n_columns))
        tails = np.zeros(self.n_components)
        groups: dict[Any, list[tuple[int, Term]]] = {}
        own: Any = spectrum
        for m, terms in enumerate(self.components):
            for term in terms:
                groups.setdefault(term.shares_modes, []).append((m, term))
        for members in groups.values():
            numbers = np.array([m for m, _ in members])
            squares = np.array([term.scale for _, term in members]) ** 2
            terms = [term for _, term in members]
            if terms[0].prior is None:
                found = np.array([term.of_functions(spectrum) for term in terms])
                np.add.at(variances, numbers, squares[:, None] * found**2)
                continue
            block = terms[0].block
            of_block = spectrum_of(spectrum, block)
            if of_block is None:
                raise IncompatibleParts(
                    f"the block {block!r} has functions and no eigenvalues for {terms[0].prior}; "
                    "leave the prior out"
                )
            std, tail = _of_priors([term.prior for term in terms], of_block)
            columns = slice(None, std.shape[1]) if block == EIGENPAIRS else own.columns_of(block)
            np.add.at(variances[:, columns], numbers, squares[:, None] * std**2)
            np.add.at(tails, numbers, squares * tail**2)
        return np.sqrt(variances), np.sqrt(tails)

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Raise `IncompatibleParts`: a mixture is no function of the eigenvalue.

        Raises
        ------
        IncompatibleParts
            Always.
        """
        raise IncompatibleParts(f"{self} is no function of the eigenvalue; use one of its terms")

    def modes_included(self, modes: Modes) -> Bool[Array, " L"]:
        """Return which columns have a part in the component."""
        return self._stds(modes)[0] > 0

    def std_of(self, modes: Modes) -> SpectralStd:
        """Return the standard deviations of the component, the number of which may be traced."""
        return SpectralStd(*self._stds(modes))

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return logarithms of the standard deviations; 0 for columns outside the component."""
        xp = array_namespace(modes.eigenvalues)
        std, tail = self._stds(modes)
        logs = xp.log(xp.where(std > 0, std, 1.0))
        return SpectralStd(logs, xp.where(tail > 0, xp.log(xp.where(tail > 0, tail, 1.0)), -xp.inf))

    def _stds(self, modes: Modes) -> tuple[Any, Any]:
        """Return the deviations of the component and of its tail."""
        assert isinstance(modes, MixtureModes)
        xp = array_namespace(modes.eigenvalues)
        number = xp.asarray(self.component).astype(int)
        return xp.asarray(modes.stds)[number], xp.asarray(modes.tails)[number]

    def __repr__(self) -> str:
        if is_learnt(self.component):
            return f"Mixture({self.n_components} components)"
        terms = " + ".join(map(repr, self.components[int(self.component)]))
        return f"Mixture(component {int(self.component)} of {self.n_components}: {terms})"


def _of_priors(priors: list[Any], spectrum: SpectralBasis) -> tuple[Any, Any]:
    """Return standard deviations of modes and tails of priors that have the same modes."""
    modes, kind = priors[0].modes(spectrum), type(priors[0])
    # A method of an instance is made anew at each access, which takes longer than the method.
    scales = [kind.log_scales(one, modes) for one in priors]
    logs = np.array([kind.log_variances(one, modes.eigenvalues) for one in priors])
    logs += np.array(scales).reshape(len(priors), -1)
    present = np.array([kind.modes_included(one, modes) for one in priors])
    log_tails = np.array([kind.log_tail_variance(one, modes) for one in priors], dtype=float)
    log_std, log_tail = log_deviations(logs, log_tails, present, modes)
    return np.where(present, np.exp(log_std), 0.0), np.exp(log_tail)


def _numbers(term: Term) -> dict[str, float]:
    """Return the numbers among the hyperparameters of a term's prior."""
    fields = [] if term.prior is None else dataclasses.fields(term.prior)
    values = {field.name: getattr(term.prior, field.name) for field in fields}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    }


def _has_constant(terms: tuple[Term, ...]) -> bool:
    """Return whether null vectors have their own variance in the first term."""
    return bool(terms[0].prior is not None and terms[0].prior.include_constant)
