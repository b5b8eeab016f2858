"""Models of the package sentence-transformers, by their names."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.labelling.encoders.base import Encoder
from graphuq.utils.concurrency import cached_property


class SentenceTransformers(Encoder):
    """A model of texts, or of texts and pictures, such as ``all-MiniLM-L6-v2``."""

    kind: ClassVar[str] = "sentence-transformers"
    package: ClassVar[str] = "sentence-transformers"
    module: ClassVar[str] = "sentence_transformers"

    @cached_property
    def _model(self) -> Any:
        return self.imported().SentenceTransformer(self.name)

    def encode(self, contents: Sequence[Any]) -> Float[np.ndarray, "n d"]:
        """Return what the model returns."""
        return np.asarray(self._model.encode(list(contents), show_progress_bar=False))
