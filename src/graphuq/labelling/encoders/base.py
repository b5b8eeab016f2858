"""Models of other packages that compute features of texts or pictures."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput
from graphuq.labelling.items import Items, TextItems
from graphuq.labelling.pictures import picture_of


class Encoder(ABC):
    """A model that turns texts or pictures into numbers. It is loaded when it is first needed.

    Attributes
    ----------
    kind : str
        What stands before the slash of a name, such as ``timm`` in ``timm/resnet18``.
    package : str
        Name by which the package is installed.
    module : str
        Name by which it is imported.
    """

    kind: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def identity(self) -> str:
        """What tells the model from others."""
        return f"{self.kind}/{self.name}"

    def check(self, items: Items) -> None:
        """Require that the package is there and the items are texts or pictures."""
        if find_spec(self.module) is None:
            raise InvalidInput("embed", f"{self.identity!r} needs {self.package}, which is not "
                               "installed", f"run: pip install {self.package}")  # fmt: skip
        if not (isinstance(items, TextItems) or items.has_pictures):
            raise InvalidInput("embed", "given for rows of a table", "leave it out")

    @abstractmethod
    def encode(self, contents: Sequence[Any]) -> Float[np.ndarray, "n d"]:
        """Return a vector for each of some texts, or pictures of PIL in colour."""

    def imported(self) -> Any:
        """Return the package."""
        return importlib.import_module(self.module)


def contents_of(items: Items, rows: Sequence[int]) -> list[Any]:
    """Return some texts, or pictures of PIL in colour on white ground."""
    if isinstance(items, TextItems):
        return [items.texts[row] for row in rows]
    return [picture_of(items, row) for row in rows]
