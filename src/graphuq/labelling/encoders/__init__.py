"""Features by a model that the user names, computed once and kept beside the labels."""

from graphuq.errors import InvalidInput
from graphuq.labelling.encoders.base import Encoder
from graphuq.labelling.encoders.onnx import Onnx
from graphuq.labelling.encoders.sentence_transformers import SentenceTransformers
from graphuq.labelling.encoders.timm import Timm

ENCODERS: dict[str, type[Encoder]] = {kind.kind: kind for kind in (SentenceTransformers, Timm)}
"""Encoders by what stands before the slash of a name."""


def encoder_named(name: str) -> Encoder:
    """Return the encoder of a name: ``sentence-transformers/…``, ``timm/…``, or an ONNX file.

    Raises
    ------
    InvalidInput
        If the name is none of these.
    """
    if name.lower().endswith(".onnx"):
        return Onnx(name)
    kind, _, rest = name.partition("/")
    if kind not in ENCODERS or not rest:
        remedy = f"use {'/NAME, '.join(ENCODERS)}/NAME, or a file that ends in .onnx"
        raise InvalidInput("embed", repr(name), remedy)
    return ENCODERS[kind](rest)


__all__ = ["ENCODERS", "Encoder", "encoder_named"]
