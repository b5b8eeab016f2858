"""Label configurations of Label Studio: which field is shown, and which classes there are."""

import dataclasses
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from graphuq.errors import InvalidInput, require

KINDS = {"text": "Text", "image": "Image"}
MAX_CONFIG = 200_000  # characters


@dataclasses.dataclass(frozen=True)
class Choices:
    """The part of a label configuration that classifies items.

    Attributes
    ----------
    from_name, to_name : str
        Names of the choice and of what it is about, which every result repeats.
    field : str
        Field of a task's data that is shown.
    classes : tuple of str
    """

    from_name: str
    to_name: str
    field: str
    classes: tuple[str, ...]

    def result(self, label: str, probability: float | None = None) -> dict:
        """Return one class as Label Studio stores it, with its probability as ``score``."""
        found = {
            "from_name": self.from_name,
            "to_name": self.to_name,
            "type": "choices",
            "value": {"choices": [label]},
        }
        return found if probability is None else {**found, "score": round(probability, 4)}


def label_config(classes: Sequence[str], kind: str = "text", field: str | None = None) -> str:
    """Return a label configuration that asks for one of some classes.

    Parameters
    ----------
    classes : sequence of str
    kind : {"text", "image"}, default "text"
    field : str, optional
        Field of a task's data that is shown; by default ``kind``.

    Raises
    ------
    InvalidInput
        If the kind is unknown or there are no classes.

    Examples
    --------
    >>> parse_config(label_config(["spam", "a & b"])).classes
    ('spam', 'a & b')
    """
    require(kind in KINDS, "kind", f"{kind!r}", f"use {' or '.join(KINDS)}")
    require(len(classes) > 0, "classes", "none", "name the classes")
    shown = quoteattr(f"${kind if field is None else field}")
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in classes)
    return (
        f'<View>\n  <{KINDS[kind]} name="{kind}" value={shown}/>\n'
        f'  <Choices name="label" toName="{kind}" choice="single">\n{choices}  </Choices>\n</View>'
    )


def parse_config(text: str) -> Choices:
    """Return the first single choice of a label configuration.

    Raises
    ------
    InvalidInput
        If it cannot be read, or has no single choice about a field.
    """
    require("<!" not in text.replace("<!--", ""), "label_config", "has a DOCTYPE", "leave it out")
    require(len(text) <= MAX_CONFIG, "label_config", f"{len(text)} characters", "shorten it")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InvalidInput("label_config", f"no XML ({error})", "give a configuration") from None
    named = {tag.get("name"): tag for tag in root.iter() if tag.get("name")}
    for tag in root.iter("Choices"):
        shown = named.get(tag.get("toName"))
        value = "" if shown is None else shown.get("value", "")
        if tag.get("choice", "single").startswith("single") and value.startswith("$"):
            classes = tuple(c.get("alias") or c.get("value") or "" for c in tag.iter("Choice"))
            return Choices(tag.get("name", ""), tag.get("toName", ""), value[1:], classes)
    raise InvalidInput("label_config", "no <Choices> with one choice about a field",
                       "add one, such as that of gq.label_studio.label_config")  # fmt: skip
