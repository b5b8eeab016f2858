"""Models of pictures of the package timm, by their names."""

import importlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput
from graphuq.labelling.encoders.base import Encoder
from graphuq.labelling.items import Items
from graphuq.utils.concurrency import cached_property


class Timm(Encoder):
    """A network of pictures without its last layer, such as ``resnet18``."""

    kind: ClassVar[str] = "timm"
    package: ClassVar[str] = "timm"
    module: ClassVar[str] = "timm"

    def check(self, items: Items) -> None:
        """Require that the items are pictures."""
        super().check(items)
        if not items.has_pictures:
            raise InvalidInput("embed", f"{self.identity!r} for texts",
                               "use sentence-transformers/NAME")  # fmt: skip

    @cached_property
    def _model(self) -> Any:
        return self.imported().create_model(self.name, pretrained=True, num_classes=0).eval()

    @cached_property
    def _transform(self) -> Any:
        data = self.imported().data
        return data.create_transform(**data.resolve_model_data_config(self._model))

    def encode(self, contents: Sequence[Any]) -> Float[np.ndarray, "n d"]:
        """Return the last layer before the classes, of pictures as the network expects them."""
        torch = importlib.import_module("torch")
        with torch.no_grad():
            found = self._model(torch.stack([self._transform(picture) for picture in contents]))
        return np.asarray(found.numpy())
