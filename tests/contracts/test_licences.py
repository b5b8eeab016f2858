"""Every package that an installation brings has a licence that lets anybody use and sell it."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
PERMISSIVE = r"\b(MIT|BSD|Apache|ISC|PSF|Python Software|HPND|Zlib|0BSD|Unlicense|CC0|3-Clause)"
BY_FILE = r"\b(MPL|Mozilla)"  # binds only who changes the files of such a package
FOR_DEVELOPERS = {"dev", "docs"}


def installed():
    """Return the distributions that the package and its extras bring, as far as they are here."""
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"]]
    asked += [one for name, some in extras.items() if name not in FOR_DEVELOPERS for one in some]
    todo, found = [Requirement(one) for one in asked], {}
    while todo:
        name = canonicalize_name(todo.pop().name)
        if name in found or name == "graphuq":
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        needs = [Requirement(one) for one in found[name].requires or []]
        todo += [one for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def licence(distribution):
    """Return what a distribution says of its licence."""
    data = distribution.metadata
    classifiers = [c for c in data.get_all("Classifier") or [] if c.startswith("License")]
    return data.get("License-Expression") or " ".join(classifiers) or data.get("License") or ""


INSTALLED = installed()


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_licence(name):
    found = licence(INSTALLED[name])
    assert re.search(f"{PERMISSIVE}|{BY_FILE}", found, re.IGNORECASE), found[:100]
    assert "affero" not in found.lower()


def test_packages_were_found():
    assert {"numpy", "scikit-learn", "jax"} <= set(INSTALLED)
