"""Renders a template on the common base, to a file that needs no other."""

import base64
import io
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from matplotlib.figure import Figure

from graphuq.utils.files import atomic_write


def write_page(path: str | Path, package: str, template: str, **values: Any) -> None:
    """Render a package's template, which extends ``base.html``, with these values.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    loaders = [PackageLoader(package, "."), PackageLoader("graphuq.utils.html", ".")]
    environment = Environment(loader=ChoiceLoader(loaders), autoescape=True, trim_blocks=True)
    html = environment.get_template(template).render(**values)
    with atomic_write(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def embedded(figure: Figure, dpi: int = 130) -> str:
    """The figure as a PNG, in base 64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return base64.b64encode(buffer.getvalue()).decode()
