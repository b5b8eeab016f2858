"""Scripts of the package's pages, as one text without imports."""

import re
from importlib.resources import files

IMPORT = re.compile(r'^import\s[^;]*?from "\./(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
EXPORT_LIST = re.compile(r"^export \{[^}]*\};\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)


def bundled(name: str) -> str:
    """Return a script of ``graphuq/web`` with the scripts that it imports, as one module.

    Each imported script comes before the first script that imports it. The text has no
    ``import`` and no ``export``, so a page can contain it. Names must differ between the scripts.

    Parameters
    ----------
    name : str
        File name, such as "report.js".

    Examples
    --------
    >>> text = bundled("map.js")
    >>> "function createMap(" in text, "function gridIndex(" in text, "import {" in text
    (True, True, False)
    """
    texts: dict[str, str] = {}
    _collect(name, texts)
    return "\n".join(texts.values())


def _collect(name: str, texts: dict[str, str]) -> None:
    """Add a script to ``texts``, after the scripts that it imports."""
    if name in texts:
        return
    text = (files("graphuq") / "web" / name).read_text(encoding="utf-8")
    for found in IMPORT.finditer(text):
        _collect(found["name"], texts)
    texts[name] = EXPORT.sub("", EXPORT_LIST.sub("", IMPORT.sub("", text)))
