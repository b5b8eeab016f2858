"""A scikit-learn transformer of whole tables, which is stored with a model."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.suspect_columns import warn_of_suspects
from graphuq.classifier.table_encoder.columns import frame_of, gaps_of, values_of
from graphuq.classifier.table_encoder.readings import (
    NO_VALUE,
    Reading,
    check_kinds,
    decimal_mark_of,
    reading_of,
    remarks,
    stripped,
)
from graphuq.classifier.table_encoder.refusals import (
    ENCODE,
    RefusedColumn,
    RefusedColumns,
    empty_cells,
)
from graphuq.classifier.table_encoder.transformer import build, from_plain, to_plain
from graphuq.errors import GraphuqWarning, InvalidInput, StorageError, require
from graphuq.results.storage import read_tree
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.user_warnings import warn_user
from graphuq.utils.written.gaps import is_gap_word

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

GROUP = "table_encoder"  # of a stored model
PARAMETERS = ("encode", "impute", "scale", "kinds", "missing_values", "decimal")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with text, categories, dates, booleans and gaps into features of numbers.

    It is a scikit-learn `ColumnTransformer` that chooses its parts by the columns:

    - numbers, and dates in days, are divided by their standard deviation (`StandardScaler`);
    - categories and booleans have one column of 0 and 1 for each value (`OneHotEncoder`);
    - long texts have a column for each of at most 1,000 words (`TfidfVectorizer`), scaled to
      length 1;
    - with ``impute=True``, an empty cell gets the median of its column, or the most frequent
      category, and a further column of 0 and 1 says where cells were empty.

    Each column of the table then counts about the same: it adds about 2 to the squared distance
    of two random rows.

    Parameters
    ----------
    encode : bool, default True
        False: only columns of numbers are accepted.
    impute : bool, default False
        False: empty cells are refused, except in texts, where they are a text without words.
    scale : bool, default True
        Whether numbers and dates are scaled.
    kinds : dict of str to str, optional
        Kind of some columns: "number", "date", "category" or "text". The format of dates or the
        decimal mark may follow it: "date %d/%m/%Y", "number ,". By default text columns are texts
        if they have four words or more on average and most are different, otherwise categories.
        Texts that are numbers count as those: all of them with one unit, such as "12 %" or
        "$1,234", or nearly all. So do dates of one format. docs/tables.md has the rules.
    missing_values : sequence of str, optional
        Texts that mean an empty cell, such as "?", besides NaN, None, NaT and "".
    decimal : {".", ","}, optional
        Decimal mark of texts that fit both, such as "1,234". By default that of the columns that
        fit only one, or a point.

    Attributes
    ----------
    kinds_ : dict of str to str
        Kind of each column.
    readings_ : dict of str to Reading
        Kind of each column, format of its numbers or dates, and texts that count as empty cells.
    transformer_ : sklearn.compose.ColumnTransformer
    feature_names_in_ : numpy.ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd, graphuq as gq
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> encoder = gq.TableEncoder(impute=True).fit(table)
    >>> encoder.get_feature_names_out()[:3].tolist()
    ['number__size', 'category__colour_blue', 'category__colour_red']
    >>> encoder.transform(table)[:, 1:].tolist()  # blue, red, size is empty
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    def __init__(
        self,
        encode: bool = True,
        *,
        impute: bool = False,
        scale: bool = True,
        kinds: Mapping[str, str] | None = None,
        missing_values: Any = (),
        decimal: str | None = None,
    ) -> None:
        self.encode = encode
        self.impute = impute
        self.scale = scale
        self.kinds = kinds
        self.missing_values = missing_values
        self.decimal = decimal

    def fit(self, X: Any, y: Any = None) -> "TableEncoder":
        """Learn kinds, medians, categories and words from a table.

        Parameters
        ----------
        X : pandas.DataFrame or polars.DataFrame, N rows
        y : object, optional
            Ignored, as in every transformer.

        Raises
        ------
        InvalidInput
            If columns cannot be used; all of them are named.

        Warns
        -----
        GraphuqWarning
            If some cells among numbers or dates count as empty, are only bounds, as "<0.1" is, or
            if dates could be read in another way; if columns of numbers seem to be names of rows,
            or to hold codes or days.
        """
        frame = frame_of(X)
        self._warn_of_suspects(frame)
        self._read_columns(frame)
        self.kinds_ = {name: reading.kind for name, reading in self.readings_.items()}
        gaps = self._gaps(frame, frame.columns)
        cleaned = self._cleaned(frame, gaps)
        if found := remarks(frame, self.readings_, self.kinds or {}):
            warn_user(f"X: {'; '.join(found)}", GraphuqWarning)
        empty = [n for n in frame.columns if self.kinds_[n] != "text" and gaps[n].any()]
        made = build(self.kinds_, empty, self.scale, len(frame))
        try:
            self.transformer_ = made.fit(cleaned)
        except ValueError:  # of the vectoriser only: all else was checked
            raise InvalidInput(
                "X",
                "a column of texts has no words that occur in some of its rows and not in most",
                "leave it out, or say that it is a category by kinds (--kind COLUMN=category)",
            ) from None
        self._empty = empty
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        return self

    def transform(self, X: Any) -> Float[np.ndarray, "M d"]:
        """Return the features of a table with the columns of the fit, in any order.

        Other columns are ignored. A category that the fit did not have gets zeros only.

        Parameters
        ----------
        X : pandas.DataFrame or polars.DataFrame, M rows

        Raises
        ------
        InvalidInput
            If a column is missing, or a cell cannot be used.

        Warns
        -----
        GraphuqWarning
            If the table has categories that the fit did not have.
        """
        check_is_fitted(self, "transformer_")
        frame = frame_of(X)
        missing = [name for name in self.kinds_ if name not in frame.columns]
        require(
            not missing,
            "X",
            f"it lacks {missing[:5]} of the {len(self.kinds_)} columns",
            "give all columns of the fit, under the same names",
        )
        gaps = self._gaps(frame, self.kinds_)
        self._refuse([e for n in self.kinds_ for e in self._gaps_refused(frame[n], gaps[n])])
        cleaned = self._cleaned(frame, gaps)
        self._warn_of_unknown(cleaned)
        features: np.ndarray = self.transformer_.transform(cleaned)
        return features

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features."""
        check_is_fitted(self, "transformer_")
        names: np.ndarray = self.transformer_.get_feature_names_out()
        return names

    def names_of_columns(self) -> list[str]:
        """Return the name of each feature without the kind of its column."""
        return [name.partition("__")[2] for name in self.get_feature_names_out()]

    def to_groups(self) -> "dict[str, xr.Dataset]":
        """Return what was learnt as a group of arrays, for ``extra`` of `GraphClassifier.save`.

        `graphuq.TableEncoder.load` reads it from the file of the model, and ``graphuq predict``
        encodes new rows by it.
        """
        require_extra("files")
        import xarray as xr

        check_is_fitted(self, "transformer_")
        plain: dict[str, Any] = {name: getattr(self, name) for name in PARAMETERS}
        plain |= {"columns": self.kinds_, "empty": self._empty}
        plain["readings"] = {name: one.to_plain() for name, one in self.readings_.items()}
        plain["learnt"] = to_plain(self.transformer_, self.kinds_)
        return {GROUP: xr.Dataset({"encoding": ((), json.dumps(plain))})}

    @classmethod
    def from_tree(cls, tree: "xr.DataTree") -> "TableEncoder":
        """Return the encoder in the groups of a file."""
        plain = json.loads(str(tree[GROUP]["encoding"].to_numpy()))
        texts = tuple(plain["missing_values"])
        encoder = cls(**{n: plain[n] for n in PARAMETERS} | {"missing_values": texts})
        encoder.kinds_, encoder._empty = plain["columns"], plain["empty"]
        encoder.readings_ = {
            name: Reading.from_plain(kind, plain["readings"][name])
            for name, kind in encoder.kinds_.items()
        }
        encoder.transformer_ = from_plain(
            plain["learnt"], encoder.kinds_, encoder._empty, encoder.scale
        )
        encoder.feature_names_in_ = np.array(list(encoder.kinds_), dtype=object)
        encoder.n_features_in_ = len(encoder.kinds_)
        return encoder

    @classmethod
    def load(cls, path: str | Path) -> "TableEncoder":
        """Read the encoder that was stored with a model.

        Raises
        ------
        StorageError
            If the file is missing or damaged, or has no encoder.
        """
        tree = read_tree(path)
        if GROUP not in tree.children:
            raise StorageError(f"'{path}' holds no encoder of tables; its features are numbers")
        with reading(path, "encoder of tables"):
            return cls.from_tree(tree)

    def _read_columns(self, frame: "pd.DataFrame") -> None:
        """Find how each column is read, or refuse all columns that the parameters do not allow."""
        given = check_kinds(self.kinds, frame.columns.tolist())
        known = self.decimal in (None, ".", ",")
        require(known, "decimal", f"{self.decimal!r}", "use a point or a comma")
        decimal = self.decimal or decimal_mark_of(frame)
        self.readings_: dict[str, Reading] = {}
        refused: list[RefusedColumn] = []
        for name in frame.columns:
            column, gaps = frame[name], gaps_of(frame[name], self._missing_values())
            try:
                reading = reading_of(column, gaps, given.get(name), decimal)
                gaps |= gaps_of(column, reading.gaps)
                if gaps.all():
                    raise RefusedColumn(name, *NO_VALUE)
            except RefusedColumn as error:
                refused.append(error)
                continue
            self.readings_[name] = reading
            if not self.encode and reading.kind != "number":
                row = int((~gaps).argmax())
                problem = f"is a {reading.kind}, as {str(column.iloc[row])[:20]!r} in row {row}"
                remedy = "leave it out, or encode it by encode=True (--encode)"
                refused.append(RefusedColumn(name, problem, remedy, "text or dates", ENCODE))
            refused += self._gaps_refused(column, gaps)
        self._refuse(refused)

    def _warn_of_suspects(self, frame: "pd.DataFrame") -> None:
        """Warn of numbers that are likely no features, in columns whose kind is not given."""
        names = [name for name in frame.columns if name not in (self.kinds or {})]

        def filled(place: int) -> Any:
            column = frame[names[place]]
            numeric = column.dtype.kind in "iuf"
            return column.mask(gaps_of(column, self._missing_values())) if numeric else column

        warn_of_suspects(names, filled)

    def _missing_values(self) -> tuple[str, ...]:
        texts = self.missing_values
        return (texts,) if isinstance(texts, str) else tuple(texts)

    def _gaps(self, frame: "pd.DataFrame", names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return which cells of each column are empty."""
        found = {}
        for name in names:
            reading = self.readings_[name]
            texts = [*self._missing_values(), *reading.gaps]
            found[name] = gaps_of(frame[name], texts, reading.kind in ("number", "date"))
        return found

    def _gaps_refused(self, column: "pd.Series", gaps: np.ndarray) -> list[RefusedColumn]:
        """Return the refusal of a column with empty cells, if it is one."""
        name = str(column.name)
        if self.impute or self.readings_[name].kind == "text" or not gaps.any():
            return []
        texts = stripped(column)
        odd = gaps & np.array([isinstance(t, str) and not is_gap_word(t) for t in texts], bool)
        row = int((odd if odd.any() else gaps).argmax())
        text = texts.iloc[row]
        return [empty_cells(name, int(gaps.sum()), row, text if isinstance(text, str) else "")]

    @staticmethod
    def _refuse(refused: list[RefusedColumn]) -> None:
        if refused:
            raise RefusedColumns(refused)

    def _cleaned(self, frame: "pd.DataFrame", gaps: Mapping[str, np.ndarray]) -> "pd.DataFrame":
        """Return the columns in the form that the transformer takes."""
        import pandas as pd

        columns, refused = {}, []
        for name in self.kinds_:
            try:
                values = values_of(frame[name], gaps[name], self.readings_[name])
            except RefusedColumn as error:
                refused.append(error)
            else:
                columns[name] = pd.Series(values, dtype=values.dtype)
        self._refuse(refused)
        return pd.DataFrame(columns)

    def _warn_of_unknown(self, cleaned: "pd.DataFrame") -> None:
        names = [name for name, kind in self.kinds_.items() if kind == "category"]
        if not names:
            return
        known = self.transformer_.named_transformers_["category"].named_steps["one_hot"].categories_
        words = []
        for name, categories in zip(names, known, strict=True):
            unknown = sorted(set(cleaned[name].dropna()) - set(categories))
            if unknown:
                words.append(f"{name} {unknown[0]!r}" + (" …" if len(unknown) > 1 else ""))
        if words:
            warn_user(
                f"X: categories that the fit did not have ({', '.join(words)}) count as none of "
                "the known ones; fit again with them if they matter",
                GraphuqWarning,
            )
