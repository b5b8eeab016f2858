"""Self-contained HTML pages from templates that extend a common base."""

import base64
import hashlib
import io
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from graphuq.utils.extras import require_extra
from graphuq.utils.files import atomic_write
from graphuq.utils.html.scripts import bundled

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

N_COLORS = 128  # of an embedded figure: a third of the bytes of all colours


def write_page(
    path: str | Path,
    package: str,
    template: str,
    *,
    script: str | None = None,
    styles: tuple[str, ...] = (),
    **values: object,
) -> None:
    """Render a template that extends ``base.html``, and write the page.

    The page needs no other file and no network, and its Content-Security-Policy allows none. The
    policy names the hashes of the style sheet and of the script, so that no other script runs,
    whatever the data contain.

    Parameters
    ----------
    path : path
        The HTML file to write.
    package, template : str
        Package that holds the template, and the name of the template.
    script : str, optional
        Script of ``graphuq/web`` that the page runs, with all that it imports.
    styles : tuple of str
        Style sheets of ``graphuq/web``, after "page.css", which all pages have.
    **values
        Values of the template's variables.

    Raises
    ------
    StorageError
        If the file cannot be written.
    MissingPackage
        If the extra ``graphuq[report]`` is not installed.
    """
    require_extra("report")
    from markupsafe import Markup

    web = files("graphuq") / "web"
    style = "\n".join((web / name).read_text("utf-8") for name in ("page.css", *styles))
    code = None if script is None else bundled(script)
    html = (
        _templates(package)
        .get_template(template)
        .render(
            policy=_policy(style, code),
            style=Markup(style),
            script=None if code is None else Markup(code),
            **values,
        )
    )
    with atomic_write(path) as temporary:
        # A lone surrogate, which no encoding knows, becomes a reference to a character.
        temporary.write_text(html, encoding="utf-8", errors="xmlcharrefreplace")


@cache
def _templates(package: str) -> "Environment":
    """Return the templates of a package, which are compiled once."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader

    loaders = [PackageLoader(package, "."), PackageLoader("graphuq.utils.html", ".")]
    environment = Environment(loader=ChoiceLoader(loaders), autoescape=True, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _policy(style: str, script: str | None) -> str:
    """Content-Security-Policy of a page with this style sheet and this script."""

    def source(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    allowed = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": source(style),
        "script-src": "'none'" if script is None else source(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{kind} {value}" for kind, value in allowed.items())


def embedded(figure: "Figure", dpi: int = 130) -> str:
    """Return a figure as a PNG picture in base 64."""
    from PIL import Image

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The font of matplotlib lacks many alphabets; the page itself has the names of classes.
        warnings.filterwarnings("ignore", r"Glyph .* missing", UserWarning)
        figure.savefig(buffer, format="png", dpi=dpi)
    with Image.open(buffer) as picture:
        few = picture.convert("RGB").quantize(N_COLORS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
