"""The labelling page in a notebook: the same page in a frame, whose requests go to the kernel."""

import http.client
import threading
from importlib.resources import files
from typing import Any

from graphuq.errors import require
from graphuq.labelling.address import COOKIE, path_of
from graphuq.labelling.hosting import ADDRESS
from graphuq.labelling.items import Items
from graphuq.labelling.layouts import layouts_of
from graphuq.utils.extras import require_extra
from graphuq.utils.html import bundled

FOLDERS = ("labelling/static", "web")
TIMEOUT_S = 60.0
METHODS = ("GET", "POST")


def page_text(title: str, user: str, items: Items, has_tags: bool = False) -> str:
    """Return the page of some items, which may have tags, as one text with style and scripts."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
    return pages.get_template("label.html").render(
        title=title,
        user=user,
        base="",
        has_tags=has_tags,
        layouts=layouts_of(items, has_tags),
        style=_static("label.css"),
        scripts=[bundled("notebook.js", FOLDERS), bundled("label.js", FOLDERS)],
    )


def forward(message: dict[str, Any], port: int, token: str) -> tuple[dict[str, Any], bytes]:
    """Pass a request of the frame to the server in this process, and return its answer.

    Parameters
    ----------
    message : dict
        ``id``, ``method``, ``path`` and ``body``.
    port : int
    token : str

    Returns
    -------
    tuple of dict and bytes
        ``id``, ``status`` and ``type``; and the content.

    Raises
    ------
    InvalidInput
        If it is no request of the page.
    """
    method, path, body = message.get("method"), message.get("path"), message.get("body")
    fits = isinstance(path, str) and path.startswith("/") and method in METHODS
    require(fits, "message", f"{method!r} {path!r}", "send a request of the page")
    headers = {"Cookie": f"{COOKIE}={token}", "Origin": f"http://{ADDRESS}:{port}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=TIMEOUT_S)
    try:
        content = None if body is None else str(body).encode()
        connection.request(str(method), f"{path_of(token)}{path}", content, headers)
        answer = connection.getresponse()
        kind = answer.getheader("Content-Type", "text/plain")
        return {"id": message.get("id"), "status": answer.status, "type": kind}, answer.read()
    except (OSError, http.client.HTTPException):
        return {
            "id": message.get("id"),
            "status": 503,
            "type": "text/plain",
        }, b"The page is closed."
    finally:
        connection.close()


def widget(text: str, height: int, port: int, token: str) -> Any:
    """Return a widget for notebooks that shows a page.

    Parameters
    ----------
    text : str
        That of `page_text`.
    height : int
        Pixels.
    port : int
        Port of the server in this process.
    token : str
        Its secret, which stays in this process.

    Raises
    ------
    MissingPackage
        If the extra ``graphuq[jupyter]`` is not installed.
    """
    require_extra("jupyter")
    import anywidget
    import traitlets

    class LabellingWidget(anywidget.AnyWidget):
        """A frame with the labelling page."""

        _esm = _static("widget.js")
        page = traitlets.Unicode(text).tag(sync=True)
        height = traitlets.Int(0).tag(sync=True)

    shown = LabellingWidget(height=height)

    def answer(message: dict[str, Any]) -> None:
        found, content = forward(message, port, token)
        shown.send(found, [content])

    def ask(_: Any, message: dict[str, Any], __: Any) -> None:
        threading.Thread(target=answer, args=(message,), daemon=True).start()

    shown.on_msg(ask)
    return shown


def _static(name: str) -> str:
    return (files("graphuq") / "labelling" / "static" / name).read_text(encoding="utf-8")
