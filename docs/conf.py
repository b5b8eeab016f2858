"""Configuration of the site: ``make docs`` builds it into ``build/site``."""

import os
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext")]

from docutils import nodes  # noqa: E402
from sphinx.ext.autosummary import autosummary_toc  # noqa: E402

from graphuq import __version__  # noqa: E402

project = "graphuq"
author = copyright = "the graphuq developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "llms",
]
exclude_patterns = [
    "_ext",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "**/GALLERY_HEADER.rst",
    "**sg_execution_times.rst",
]
templates_path = ["_templates"]
highlight_language = "text"
default_role = "py:obj"
nitpicky = False
smartquotes = False  # "knn", -- and "" are often what a reader types

# Pages: headings have the anchors that viewers of repositories give them.
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions
ROOT_PAGES = {
    "CHANGELOG.md": "changelog",
    "CODE_OF_CONDUCT.md": "conduct",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
}
ROOT_LINK = re.compile(rf"\]\((?:\.\./)*({'|'.join(map(re.escape, ROOT_PAGES))})")

# Reference: parameters are described by the docstrings, whose types numpydoc shows.
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Other projects' references need the network, on which a build must not depend. With
# GRAPHUQ_DOCS_ONLINE=1 it is tried; a project that is not reached is read from an empty inventory,
# so its names have no links, and nothing is warned of. GRAPHUQ_INVENTORIES names a folder of files
# like numpy.inv, to be read in place of the network.
PROJECTS = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
    "matplotlib": "https://matplotlib.org/stable",
    "pandas": "https://pandas.pydata.org/docs",
}
intersphinx_timeout = 10  # seconds
intersphinx_mapping = {}
if folder := os.environ.get("GRAPHUQ_INVENTORIES"):
    found = {path.stem: str(path) for path in Path(folder).glob("*.inv")}
    intersphinx_mapping = {name: (PROJECTS[name], path) for name, path in found.items()}
elif os.environ.get("GRAPHUQ_DOCS_ONLINE") == "1":
    empty = str(HERE / "_ext" / "empty.inv")
    intersphinx_mapping = {name: (url, (None, empty)) for name, url in PROJECTS.items()}

SECTIONS = ["first_steps", "data", "labels", "trust", "models"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(own_\w+|readme_figure|page_pictures|animations)\.py$",
    "subsection_order": [f"../examples/{section}" for section in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 3600,  # seconds: no page says how long it took on which machine
    "show_signature": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

html_theme = "furo"
html_title = f"graphuq {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The history that `make bench` keeps belongs to a machine, not to the repository. A site that is
# built where there is one shows its page.
HISTORY = Path(os.environ.get("GRAPHUQ_BENCH_HISTORY", HERE.parent / "benchmarks/results/history"))
HISTORY = HISTORY.with_suffix(".html")
html_extra_path = [str(HISTORY)] if HISTORY.exists() else []
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

warnings.filterwarnings("ignore", "ArviZ is undergoing a major refactor", FutureWarning)


# Pages whose links are their tables of contents, in this order.
LINKED = {
    "measurements": r"(?:measurements|archive)/\w+",
    "theory": r"theory/\w+",
    "archive/index": r"\w+",
}


def table_of_contents(docname, text):
    """Return a hidden table of contents of the pages that a page links, each once."""
    pages = re.findall(rf"\]\(({LINKED[docname]})\.md\)", text)
    return "\n".join(["", "```{toctree}", ":hidden:", "", *dict.fromkeys(pages), "```", ""])


def adapt_to_the_site(app, docname, source):
    """Put pages of the root in place of their stubs, mend links, and add tables of contents."""
    text = source[0]
    for name, stub in ROOT_PAGES.items():
        if docname == f"project/{stub}":
            app.env.note_dependency(str(HERE.parent / name))
            text = (HERE.parent / name).read_text(encoding="utf-8").replace("](docs/", "](../")
    folder = "../" * docname.count("/") + "project/"
    text = ROOT_LINK.sub(lambda link: f"]({folder}{ROOT_PAGES[link[1]]}.md", text)
    text = text.replace("../examples/GALLERY_HEADER.rst", "gallery/index.rst")
    if docname in LINKED:
        text += table_of_contents(docname, text)
    if docname == "measurements" and html_extra_path:
        text += f'\n<a href="{HISTORY.name}">The history kept where this site was built</a>\n'
    source[0] = text


def keep_objects_out_of_the_sidebar(app, doctree):
    """Leave pages of single names to tables and search, so that sidebars are short."""
    for toc in list(doctree.findall(autosummary_toc)):
        toc.parent.remove(toc)


def end_code_at_its_last_line(app, doctree):
    """Remove the empty line that doctests of Markdown need after an output."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


MENDS = {
    'role="heading">': 'role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',  # what scrolls can be reached by keys
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<aside class="sidebar': '<aside aria-label="All pages" class="sidebar',
    '<aside class="toc': '<aside aria-label="On this page" class="toc',
}
PICTURE = re.compile(r'(?<!\.png">)<img (?![^>]*_thumb)[^>]*src="([^"]*_images/[^"]+)"[^>]*>')


def make_accessible(app, exception):
    """Add what readers without a mouse or a screen need and the theme lacks.

    A tap on a picture opens it alone, so that its letters can be read on a phone.
    """
    if exception or app.builder.name != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found = text
        for old, new in MENDS.items():
            found = found.replace(old, new)
        found = PICTURE.sub(r'<a href="\1">\g<0></a>', found)
        if found != text:
            page.write_text(found, encoding="utf-8")


def setup(app):
    """Register the hooks, the second one before Sphinx collects the tables of contents."""
    app.connect("source-read", adapt_to_the_site)
    app.connect("doctree-read", keep_objects_out_of_the_sidebar, priority=100)
    app.connect("doctree-read", end_code_at_its_last_line)
    app.connect("build-finished", make_accessible)
