"""Models in ONNX files, which onnxruntime runs."""

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.labelling.encoders.base import Encoder
from graphuq.labelling.items import Items, TextItems
from graphuq.utils.concurrency import cached_property
from graphuq.utils.gate import require_file

SIDE = 224  # pixels, if the model takes pictures of any size
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the colours of ImageNet
TOKENIZER = "tokenizer.json"  # beside a model of texts, as Hugging Face saves it
MAX_TOKENS = 512


class Onnx(Encoder):
    """A file with a model of pictures or of texts. Its first output is the feature.

    Pictures are scaled to the size of the input and, unless that is of bytes, have the mean and
    standard deviation of ImageNet. Texts are the input, if that is of texts; or tokens by the file
    ``tokenizer.json`` beside the model (package ``tokenizers``). An output with a vector for each
    token or place is averaged.
    """

    kind: ClassVar[str] = "onnx"
    package: ClassVar[str] = "onnxruntime"
    module: ClassVar[str] = "onnxruntime"

    @property
    def identity(self) -> str:
        """Name and checksum of the file."""
        path = require_file(self.name)
        return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"

    def check(self, items: Items) -> None:
        """Require that the file is there, and takes such items."""
        require_file(self.name)
        super().check(items)
        names, first = [one.name for one in self._session.get_inputs()], self._input
        is_text = "input_ids" in names or first.type == "tensor(string)"
        fits = is_text == isinstance(items, TextItems) and (is_text or len(first.shape) == 4)
        what = f"'{Path(self.name).name}' with input {first.name} of {first.type} {first.shape}"
        require(fits, "embed", what, "give a model of such items")
        if "input_ids" in names:
            require_file(Path(self.name).with_name(TOKENIZER))

    @cached_property
    def _session(self) -> Any:
        runtime = self.imported()
        try:
            return runtime.InferenceSession(self.name, providers=["CPUExecutionProvider"])
        except Exception as error:  # of many types
            reason = " ".join(str(error).split())[:200]
            raise StorageError(f"'{self.name}' is not a readable ONNX file ({reason})") from None

    @property
    def _input(self) -> Any:
        return self._session.get_inputs()[0]

    def encode(self, contents: Sequence[Any]) -> Float[np.ndarray, "n d"]:
        """Return the first output."""
        if isinstance(contents[0], str):
            inputs, mask = self._of_texts(contents)
        else:
            inputs, mask = {self._input.name: self._of_pictures(contents)}, None
        found = np.asarray(self._session.run(None, inputs)[0])
        return _averaged(found, mask)

    def _of_pictures(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return pictures of the size and order of axes of the input."""
        shape = self._input.shape
        is_last = shape[3] == 3
        height, width = shape[1:3] if is_last else shape[2:4]
        size = tuple(side if isinstance(side, int) else SIDE for side in (width, height))
        pixels = np.stack([np.asarray(picture.resize(size)) for picture in pictures])
        if self._input.type != "tensor(uint8)":
            pixels = ((pixels / 255 - MEAN) / STD).astype(np.float32)
        return pixels if is_last else np.ascontiguousarray(np.moveaxis(pixels, 3, 1))

    def _of_texts(self, texts: Sequence[str]) -> tuple[Mapping[str, np.ndarray], Any]:
        """Return the inputs of texts, and which tokens are no padding."""
        if self._input.type == "tensor(string)":
            values = np.array(list(texts), dtype=object)
            column = len(self._input.shape) == 2
            return {self._input.name: values[:, None] if column else values}, None
        found = self._tokenizer.encode_batch(list(texts))
        mask = np.array([one.attention_mask for one in found], dtype=np.int64)
        known = {"input_ids": np.array([one.ids for one in found], dtype=np.int64),
                 "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}  # fmt: skip
        names = [one.name for one in self._session.get_inputs()]
        require(set(names) <= set(known), "embed", f"inputs {names}", f"use {list(known)}")
        return {name: known[name] for name in names}, mask

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            tokenizers = importlib.import_module("tokenizers")
        except ImportError:
            what = f"'{self.name}' takes tokens, which needs tokenizers"
            raise InvalidInput("embed", what, "run: pip install tokenizers") from None
        found = tokenizers.Tokenizer.from_file(str(Path(self.name).with_name(TOKENIZER)))
        found.enable_padding()
        found.enable_truncation(MAX_TOKENS)
        return found


def _averaged(found: np.ndarray, mask: np.ndarray | None) -> Float[np.ndarray, "n d"]:
    """Return an output with one vector an item: the mean over tokens or places."""
    require(found.ndim in (2, 3, 4), "embed", f"an output of shape {found.shape}",
            "use a model whose first output has a vector for each item")  # fmt: skip
    if found.ndim == 4:
        return found.mean(axis=(2, 3))
    if found.ndim == 3:
        weights = np.ones(found.shape[:2]) if mask is None else mask
        return (found * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1, keepdims=True)
    return found
