"""Begin a release: ``python changes/release.py 0.4.0``.

The changelog takes the lines of the files in this folder, which are removed, and every place that
names the version gets the new one. Nothing is written unless all of it can be.
"""

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
CHANGELOG, NEW = "CHANGELOG.md", "### New\n\n"
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "papers/pyproject.toml": r'^version = "(.*)"$',
    "src/graphuq/utils/version.py": r'^__version__ = "(.*?)"',
    "CITATION.cff": r"^version: (.*)$",
}
"""Where the version stands, as the group of a pattern that is found once."""


def release(version: str, root: Path) -> dict[Path, str]:
    """Return the new text of each file of a checkout, for a version such as "0.4.0"."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"version: {version!r} is no number such as 0.4.0")
    texts = {}
    for name, pattern in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        found = list(re.finditer(pattern, text, re.MULTILINE))
        if len(found) != 1:
            raise SystemExit(f"{name}: {len(found)} lines fit {pattern}; one is needed")
        texts[root / name] = text[: found[0].start(1)] + version + text[found[0].end(1) :]
    texts[root / CHANGELOG] = with_lines(
        (root / CHANGELOG).read_text(encoding="utf-8"), version, lines_of(root / FOLDER.name)
    )
    return texts


def lines_of(folder: Path) -> str:
    """Return the lines of all files of changes, in the order of their names."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    for name, text in found.items():
        if not text.startswith("- ") or not text.endswith("\n") or "\n\n" in text:
            raise SystemExit(f"{name}: give lines of a list, each beginning with '- '")
    return "".join(found.values())


def with_lines(changelog: str, version: str, lines: str) -> str:
    """Return the changelog with lines at the top of what is new in a version."""
    title, _, rest = changelog.partition("\n## ")
    if not rest.startswith(f"{version}\n"):
        return f"{title}\n## {version}\n\n{NEW}{lines}\n## {rest}"
    if NEW not in rest.partition("\n## ")[0]:
        raise SystemExit(f"{CHANGELOG}: the section {version} has no part '### New'")
    before, _, after = rest.partition(NEW)
    return f"{title}\n## {before}{NEW}{lines}{after}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for path, text in release(sys.argv[1], FOLDER.parent).items():
        path.write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        path.unlink()
    print(f"Version {sys.argv[1]}; see CONTRIBUTING.md, A release.")
