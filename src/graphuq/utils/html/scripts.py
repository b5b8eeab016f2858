"""Scripts of the package's pages, as one text without imports."""

import re
from collections.abc import Sequence
from importlib.resources import files

IMPORT = re.compile(r'^import\s[^;]*?from "\./(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
EXPORT_LIST = re.compile(r"^export \{[^}]*\};\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)


def bundled(name: str, folders: Sequence[str] = ("web",)) -> str:
    """Return a script of the package with the scripts that it imports, as one module.

    Each imported script comes before the first script that imports it. The text has no
    ``import`` and no ``export``, so a page can contain it. Names must differ between the scripts.

    Parameters
    ----------
    name : str
        File name, such as "report.js".
    folders : sequence of str, default ("web",)
        Folders of the package in which scripts are looked for, in this order.

    Examples
    --------
    >>> text = bundled("map.js")
    >>> "function createMap(" in text, "function gridIndex(" in text, "import {" in text
    (True, True, False)
    """
    texts: dict[str, str] = {}
    _collect(name, folders, texts)
    return "\n".join(texts.values())


def _collect(name: str, folders: Sequence[str], texts: dict[str, str]) -> None:
    """Add a script to ``texts``, after the scripts that it imports."""
    if name in texts:
        return
    places = [files("graphuq").joinpath(*folder.split("/"), name) for folder in folders]
    text = next(place for place in places if place.is_file()).read_text(encoding="utf-8")
    for found in IMPORT.finditer(text):
        _collect(found["name"], folders, texts)
    texts[name] = EXPORT.sub("", EXPORT_LIST.sub("", IMPORT.sub("", text)))
