"""Check that no module of the package has more than 400 lines."""

import sys
from pathlib import Path

LIMIT = 400
EXCUSES: dict[str, int] = {}  # lines allowed, by path from the root

root = Path(__file__).parents[2]
too_long = [
    f"{name}: {n_lines} lines"
    for folder in ("src", "papers/src")
    for path in sorted((root / folder).rglob("*.py"))
    for name in [path.relative_to(root).as_posix()]
    for n_lines in [len(path.read_text().splitlines())]
    if n_lines > EXCUSES.get(name, LIMIT)
]
if too_long and __name__ == "__main__":
    sys.exit("modules over their limit: " + ", ".join(too_long))
