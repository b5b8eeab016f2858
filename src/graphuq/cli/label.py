"""``graphuq label``: a person labels items in the browser; labels and predictions are files."""

import dataclasses
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from graphuq.cli import options as opt
from graphuq.cli.facts import Facts, the_facts
from graphuq.cli.generated import Options, with_options
from graphuq.errors import InvalidInput, require
from graphuq.utils.files import check_writable
from graphuq.utils.output_folder import atomic_folder, output_folder

if TYPE_CHECKING:
    from graphuq.labelling.hosting import Hosting
    from graphuq.labelling.server import LabellingPage

PAGE, PEOPLE = "Page", "Several people"
WAIT = 10.0  # seconds for another run that writes to the output folder
WAIT_FOR_MODEL = 120.0  # seconds until the model knows the last labels
WAIT_FOR_FIRST = 3600.0  # until the first model is there
LABELS_FILE = "labels.jsonl"  # in the output folder, written at each label
TABLES = ("labels.csv", "predictions.csv")  # of labels and of answers, written at the end


DEFAULTS = {  # of the page, where they differ from those of the classifier
    "metric": "cosine for words of texts, else euclidean",
    "model": "largest-evidence",
}


@with_options(
    Options(opt.CLASSIFIER, ["graph", "n_neighbors", "weights", "metric"], opt.GRAPH, DEFAULTS),
    Options(opt.CLASSIFIER, ["model"], opt.MODEL, DEFAULTS),
)
def label(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet, JSONL, NPY, NPZ or H5AD file; each row is an item. Or a file of "
            "Label Studio or Prodigy, or a data set of Hugging Face; or a scene: a GeoTIFF or ENVI "
            "raster, of which each pixel is an item. Not needed with --images.",
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        opt.option("COLUMN", "Column with the text that a person reads.", opt.INPUT),
    ] = None,
    image_column: Annotated[
        str | None,
        opt.option(
            "COLUMN",
            "Column with files of pictures, in the folder of FILE or in --images.",
            opt.INPUT,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        opt.option("FOLDER", "Folder of pictures; without FILE, all of them are items.", opt.INPUT),
    ] = None,
    features: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "NPY, NPZ, CSV or Parquet file with features, such as embeddings: a row for "
            "each item, in the same order.",
            opt.INPUT,
            default="numbers of FILE, words of texts, or pixels",
        ),
    ] = None,
    embed: Annotated[
        str | None,
        opt.option(
            "MODEL",
            "Model that computes features of texts or pictures once, where its package is "
            "installed: sentence-transformers/NAME, timm/NAME, or a file .onnx.",
            opt.INPUT,
        ),
    ] = None,
    label_column: opt.LabelColumn = None,
    labels: opt.Labels = None,
    missing_label: opt.MissingLabel = None,
    id_column: opt.IdColumn = None,
    drop: opt.Drop = None,
    read: opt.Read = None,
    read_labels: opt.ReadLabels = None,
    encode: opt.Encode = False,
    impute: opt.Impute = False,
    kind: opt.Kind = None,
    missing_value: opt.MissingValue = None,
    class_name: Annotated[
        list[str] | None,
        opt.option(
            "NAME",
            "Class that the page offers from the start. May be repeated.",
            PAGE,
            "--class",
            default="the known ones; others can be added on the page",
        ),
    ] = None,
    ordered: opt.Ordered = False,
    class_order: opt.ClassOrder = None,
    tags: Annotated[
        bool,
        opt.flag(
            "--tags",
            "An item may have several classes, or none. Known ones are texts such as comedy;drama, "
            "and ; alone for an item without tags.",
            PAGE,
        ),
    ] = False,
    user: Annotated[
        str | None,
        opt.option(
            "NAME", "Name that is stored with each label.", PAGE, default="the name of the account"
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=65535,
            help="Port of the page on this machine.",
            rich_help_panel=PAGE,
            show_default="a free one",
        ),
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            help="Open the page in the browser, or only print its address.",
            rich_help_panel=PAGE,
        ),
    ] = True,
    title: Annotated[
        str | None,
        opt.option("TEXT", "Title of the page.", PAGE, default="the name of FILE"),
    ] = None,
    output: opt.Output = Path("out"),
    quiet: opt.Quiet = False,
    scaling: opt.Scaling = "none",
    pca: opt.Pca = None,
    rule: Annotated[
        str,
        opt.option(
            "NAME",
            "What the page proposes next: stochastic-margin, margin, entropy, …, as "
            "graphuq.acquisition.query takes it.",
            PAGE,
        ),
    ] = "auto",
    overlap: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of the items that two people label, the second one without help.",
            rich_help_panel=PEOPLE,
        ),
    ] = 0.0,
    goal: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Accuracy of the predictions at which you want to stop; an audit on the page "
            "says whether it is reached.",
            rich_help_panel=PAGE,
        ),
    ] = 0.95,
    export: Annotated[
        list[str] | None,
        opt.option(
            "LAYOUT",
            "Also write items with labels at the end: csv, parquet, jsonl, label-studio, prodigy "
            "or huggingface. May be repeated.",
            opt.OUTPUT,
        ),
    ] = None,
    guidelines: Annotated[
        Path | None,
        opt.option("FILE", "Text or Markdown file that the page shows beside the item.", PAGE),
    ] = None,
    users: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "People who log in, as graphuq label-user writes them.",
            PEOPLE,
            default="nobody; the page is for this machine",
        ),
    ] = None,
    origin: Annotated[
        str | None,
        opt.option(
            "URL",
            "With --users: address that browsers open, of a proxy with TLS, such as "
            "https://labels.example.org.",
            PEOPLE,
        ),
    ] = None,
    host: Annotated[
        str | None,
        opt.option(
            "ADDRESS",
            "With --users: address on which the page listens.",
            PEOPLE,
            default="127.0.0.1",
        ),
    ] = None,
    plain_http: Annotated[
        bool,
        opt.flag(
            "--plain-http", "Allow an --origin without TLS; others can then read passwords.", PEOPLE
        ),
    ] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Label items on a page in the browser, which proposes what to label next.

    The page runs on this machine, without network, until Ctrl+C. The output folder receives
    labels.jsonl, which is written at each label and continued by the same command; and at the end
    labels.csv (for graphuq classify --labels) and predictions.csv (a class for every item).

    Of a scene the page shows the picture: click on a place and label its pixel. labels.csv has the
    columns column, row and class, for graphuq map --labels, which --labels takes, too.

    With --encode, all columns of FILE but labels, ids and pictures are features, of whatever kind.

    Example: graphuq label mails.csv --text-column body -o out
    """
    from graphuq.cli.columns import label_options, read_options, require_one_source
    from graphuq.utils.extras import require_extra

    require_extra("label")
    require_one_source(label_column, labels)
    order = _order(ordered, class_order)
    require(not (tags and order), "--tags", "given beside an order", "leave one of the two out")
    hosting = _hosting(users, origin, host, plain_http)
    check_writable(output)
    from graphuq.cli.encoding import encoder_from
    from graphuq.cli.items import Columns, read_source
    from graphuq.cli.label_page import open_page
    from graphuq.cli.unread import require_unread
    from graphuq.labelling.layouts import layout_named, require_holds

    files = {"FILE": file, "--features": features, "--labels": labels,
             "--users": users, "--guidelines": guidelines}  # fmt: skip
    layouts = [layout_named(name) for name in export or []]
    require_unread(files, output, LABELS_FILE, *TABLES, *(layout.file for layout in layouts))

    encoder = encoder_from(encode, impute, kind, missing_value, scaling)
    columns = Columns(text_column, image_column, label_column, id_column, drop or (), images,
                      features, encoder, read_options(read))  # fmt: skip
    source = read_source(file, columns, labels, label_options(read_labels, labels))
    for layout in layouts:
        require_holds(layout, source.items, tags)
    if embed is not None:
        require(features is None, "--embed", "given beside --features", "give one of the two")
        require(encoder is None, "--embed", "given beside --encode", "give one of the two")
        source = dataclasses.replace(source, features=None, words=f"Features: {embed}.")
    facts = the_facts(quiet)
    facts.say("{read}" if source.line else "", read=source.line)
    facts.say("{features}" if source.words else "", features=source.words)
    shown = file if file is not None else images
    assert shown is not None  # required by read_source
    page = open_page(
        source,
        given,
        ("none" if encoder is not None else scaling, pca),
        order,
        missing_label or None,
        tags,
        classes=class_name or [],
        labels=output / LABELS_FILE,
        rule=rule,
        user=user,
        port=port,
        open_browser=browser,
        title=title or f"graphuq label: {shown.name}",
        overlap=overlap,
        goal=goal,
        guidelines=guidelines,
        embed=embed,
        progress=embed is not None and not quiet,
        hosting=hosting,
    )
    _serve(page, output, layouts, facts)


def _order(ordered: bool, class_order: str | None) -> bool | list[str]:
    """Return the parameter ``ordered`` of the page."""
    from graphuq.cli.class_order import names_in_order

    if class_order is None:
        return ordered
    require(not ordered, "--ordered", "given beside --class-order", "leave one of the two out")
    return names_in_order(np.array([], dtype=str), class_order)


def _hosting(
    users: Path | None, origin: str | None, host: str | None, plain_http: bool
) -> "Hosting | None":
    """Return where the page is, or None for a page of this machine."""
    from graphuq.labelling.hosting import ADDRESS, Hosting

    if users is None:
        is_given = origin is not None or host is not None or plain_http
        what, remedy = "--origin, --host or --plain-http", "add --users, or leave it out"
        require(not is_given, what, "given without --users", remedy)
        return None
    remedy = "add the address that browsers open, such as https://labels.example.org"
    require(origin is not None, "--origin", "not given beside --users", remedy)
    return Hosting(users, str(origin), host or ADDRESS, plain_http)


def _catch_up(page: "LabellingPage", facts: Facts) -> None:
    """Wait until the model knows the last labels; another Ctrl+C ends the wait."""
    if page.forecasts.is_current or page.session.model is None:
        return
    words = "The model takes the last labels; Ctrl+C writes predictions without them."
    facts.progress(words, always=True)
    with suppress(KeyboardInterrupt, InvalidInput):
        page.forecasts.wait(WAIT_FOR_MODEL)
    if not page.forecasts.is_current:
        facts.progress("The predictions do not know the last labels.", always=True)


@contextmanager
def _short_pauses(page: "LabellingPage") -> Iterator[None]:
    """Keep Python's garbage collector from visiting again and again what stays.

    Some 250,000 objects of modules and items stay as long as the page. A full collection visits
    them all, and every request waits: 0.13 s on a free machine.
    """
    is_over = threading.Event()

    def settle() -> None:
        with suppress(InvalidInput):
            page.session.wait_until_current(WAIT_FOR_FIRST)  # modules and graph are loaded then
        if not is_over.is_set() and not gc.get_freeze_count():
            gc.freeze()
            is_over.wait()
            gc.unfreeze()

    thread = threading.Thread(target=settle, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(1.0)  # a fit that still runs is not waited for


def _serve(page: "LabellingPage", output: Path, layouts: list[Any], facts: Facts) -> None:
    """Wait for Ctrl+C, then write the tables."""
    from graphuq.utils.csv_files import write_csv

    place = f"of a proxy to {page.origin}" if page.is_hosted else "of this machine only"
    facts.progress(f"{page.address}\n({place}; Ctrl+C ends it, and no label is lost)", always=True)
    with _short_pauses(page):
        try:
            page.wait()
        except KeyboardInterrupt:
            facts.progress("", always=True)
            _catch_up(page, facts)
        finally:
            page.close()
    predictions, items = page.predictions(), page.session.items
    labels = items.label_table(page.session.latest[1])
    tables = dict(zip(TABLES, (labels, predictions), strict=True))
    with output_folder(output, wait=WAIT), atomic_folder(output) as folder:
        for name, table in tables.items():
            write_csv(table, folder / name)
        for layout in layouts:
            page.export(layout.name, folder / layout.file)
    facts.say(
        "{n_labelled} of {n_items} items are labelled",
        n_labelled=len(labels),
        n_items=len(predictions),
        address=page.address,
    )
    names = (LABELS_FILE, *tables, *(layout.file for layout in layouts))
    facts.wrote(*(output / name for name in names))
