"""Methods of `GraphClassifier` for tables in a store."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from graphuq.errors import InvalidInput, require

if TYPE_CHECKING:
    from graphuq.engine.resources import Estimate


class InStore:
    """Methods that need the parameter ``store``."""

    store: Any
    client: Any
    _stored: Any

    def estimate(self, X: Any, y: Any = None) -> "Estimate":
        """Return the memory and disk that a fit in a store needs, without fitting.

        Parameters
        ----------
        X : path, Dask collection, array_like or DataFrame
            As for `fit`.
        y : str, optional
            Column of the labels, if they are in one.

        Returns
        -------
        Estimate
            With ``memory`` and ``disk`` in bytes, and ``n_parts``.

        Raises
        ------
        InvalidInput
            Without the parameter ``store``, or if the table cannot be used.
        """
        self._check_store()
        from graphuq.classifier.stored.parameters import check_parameters, needed_for, table_of

        store, _ = check_parameters(self)
        return needed_for(self, table_of(X, y if isinstance(y, str) else None, store)[0])

    def to_parquet(self, path: str | Path) -> list[Path]:
        """Write class and probabilities of each row of a fit in a store, in the order of the rows.

        There is one file for each block of the table. docs/files.md describes the columns; ``id``
        is the number of the row. ``settings.json`` has all settings, the version, and the counts.

        Parameters
        ----------
        path : path
            Folder, whose files are replaced together; see docs/robustness.md.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        InvalidInput
            Without the parameter ``store``.
        StorageError
            If a file cannot be written; what was there before is then unchanged.
        """
        self._check_store()
        check_is_fitted(self)
        from graphuq.classifier.stored.output import write_answers

        return write_answers(self, path)

    def _check_store(self) -> None:
        require(
            self.store is not None,
            "store",
            "not given",
            "give a folder, or use result_.to_dataframe()",
        )
        if hasattr(self, "classes_") and self._stored is None:
            raise InvalidInput("store", "given after the fit", "fit again")
