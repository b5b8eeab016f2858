"""Types of what users pass to the classifier, which checks them itself and names the remedy."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike
    from scipy import sparse

    Table: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
    Labels: TypeAlias = ArrayLike | None
    Groups: TypeAlias = dict[str, xr.Dataset] | None
else:  # run-time type checkers let every value through to the checks of the classifier
    Table = Labels = Groups = object
