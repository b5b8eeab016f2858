"""Self-contained HTML pages from templates that extend a common base."""

import base64
import io
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader
from matplotlib.figure import Figure

from graphuq.utils.files import atomic_write


def write_page(path: str | Path, package: str, template: str, **values: object) -> None:
    """Render a template that extends ``base.html``, and write the page.

    Parameters
    ----------
    path : path
        The HTML file to write.
    package, template : str
        Package that holds the template, and the name of the template.
    **values
        Values of the template's variables.

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
    """Return a figure as a PNG picture in base 64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return base64.b64encode(buffer.getvalue()).decode()
