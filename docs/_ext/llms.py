"""``llms.txt`` of the site: what graphuq does, how to call it, and every page with its sentence.

It is made from the pages, so that it says nothing of its own. The format is that of llmstxt.org.
"""

import re
from pathlib import Path

import typer
from sphinx.util import logging

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
NO_PAGE = re.compile(r"^(```|~~~|\||>|!\[|<|- |\d+\. |\.\. |#|\s)")  # no paragraph of text


def plain(text):
    """Return a paragraph without the marks of Markdown and reStructuredText."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text)
    return re.sub(r"\*\*|``", "", text)


def first_sentence(text):
    """Return the first sentence of a text."""
    return re.split(r"(?<=\S\S[.?!])\s(?=[A-Z`])", plain(text), maxsplit=1)[0].rstrip(",:")


def title_and_sentence(source):
    """Return the title of a page and the first sentence of its text, or ""."""
    title, text = re.match(r"(?:# )?(.+)\n(?:=+\n)?((?s:.*))", source).groups()
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if not NO_PAGE.match(paragraph):
            return plain(title), first_sentence(paragraph)
    return plain(title), ""


def source_of(page):
    """Return the source of a page, or of the page of the root that a stub stands for."""
    if page == "gallery/index":
        return (ROOT / "examples" / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
    (path,) = [DOCS / f"{page}{end}" for end in (".md", ".rst") if (DOCS / f"{page}{end}").exists()]
    text = path.read_text(encoding="utf-8")
    stub = re.match(r"The site shows \[(.*)\]", text)
    return (ROOT / stub[1]).read_text(encoding="utf-8") if stub else text


def sections():
    """Return the pages of each section, in the order of the sidebar."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    found = {}
    for block in re.findall(r"^```{toctree}\n(.*?)^```$", index, re.M | re.S):
        caption = re.search(r":caption: (.*)", block)[1]
        found[caption] = re.findall(r"^([\w/]+)$", block, re.M)
    return found


def commands():
    """Return name and first sentence of the help of each command."""
    from graphuq.cli.app import app

    group = typer.main.get_command(app)
    return {
        name: first_sentence(group.get_command(None, name).help)
        for name in group.list_commands(None)
    }


def llms_text():
    """Return the text of the file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    bold, about = re.search(r"\*\*(.*?)\*\*\n\n(.*?)\n\n", readme, re.S).groups()
    example = re.search(r"^## Six lines\n\n(```python\n.*?```)", readme, re.M | re.S)[1]
    lines = ["# graphuq", "", f"> {plain(bold)}", "", plain(about), "", "In Python:", "", example]
    lines += [
        "",
        "At the command line. Every command has --json, which prints one JSON object:",
        "",
    ]
    lines += [f"- `graphuq {name} --json`: {what}" for name, what in commands().items()]
    for caption, pages in sections().items():
        lines += ["", f"## {caption}", ""]
        for page in pages:
            title, sentence = title_and_sentence(source_of(page))
            lines.append(f"- [{title}]({page}.html)" + (f": {sentence}" if sentence else ""))
    return "\n".join(lines) + "\n"


def write(app, exception):
    """Write the file beside the pages, and warn of a link that leads nowhere."""
    if exception or app.builder.name != "html":
        return
    text, folder = llms_text(), Path(app.outdir)
    (folder / "llms.txt").write_text(text, encoding="utf-8")
    for target in re.findall(r"^- \[.*\]\((.*?)\)", text, re.M):
        if not (folder / target).exists():
            logging.getLogger(__name__).warning("llms.txt: there is no page %s", target)


def setup(app):
    """Write the file when the pages are built."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
