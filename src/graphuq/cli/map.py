"""``graphuq map``: a scene and a few labelled places → maps of class and certainty, report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphuq.cli import options as opt
from graphuq.cli.facts import the_facts
from graphuq.cli.generated import Options, with_options
from graphuq.errors import require
from graphuq.utils.extras import require_extra
from graphuq.utils.output_folder import output_folder

OF_MAP = Options(opt.CLASSIFIER, ["n_eigenpairs", "model", "inference", "random_state"], opt.MODEL)
REPORT = "report.html"
MAX_PIXELS, MAX_LABELS = 30_000, 1_000  # as `graphuq.external.raster.fit_scene` has them

Scene = Annotated[
    Path,
    typer.Argument(metavar="SCENE", help="GeoTIFF, ENVI or other raster of several bands."),
]
Labels = Annotated[
    Path,
    opt.option(
        "FILE",
        "CSV file with class and x, y (or lon, lat, or column, row); GeoJSON points and polygons; "
        "or a raster of whole numbers, 0 where unlabelled.",
        opt.INPUT,
    ),
]
LabelColumn = Annotated[
    str, opt.option("COLUMN", "Column, or property of GeoJSON, with the class.", opt.INPUT)
]
Crs = Annotated[
    str | None,
    opt.option(
        "NAME",
        "System of the coordinates of --labels, as in EPSG:32616.",
        opt.INPUT,
        default="that of the scene for x and y, WGS 84 for lon and lat and GeoJSON",
    ),
]
MaxPixels = Annotated[
    int,
    opt.option(
        "NUMBER",
        "Pixels that are nodes of the graph, at most: the labelled ones and a random sample.",
        opt.LARGE,
    ),
]
MaxLabels = Annotated[
    int,
    opt.option("NUMBER", "Labels that are used, at most: about as many of each class.", opt.LARGE),
]


@with_options(OF_MAP)
def map_command(
    scene: Scene,
    labels: Labels,
    label_column: LabelColumn = "class",
    crs: Crs = None,
    max_pixels: MaxPixels = MAX_PIXELS,
    max_labels: MaxLabels = MAX_LABELS,
    output: opt.Output = Path("out"),
    quiet: opt.Quiet = False,
    *,
    given: dict[str, Any],
) -> None:
    """Infer the class of every pixel of SCENE from a few labelled places.

    The output folder receives rasters with the georeference of the scene: classes.tif,
    probabilities.tif, entropy.tif and rank.tif; next.csv, the places to label next; report.html
    and settings.json.

    Example: graphuq map scene.tif --labels places.csv -o maps
    """
    require_extra("raster")
    require_extra("report")
    from graphuq.cli.unread import require_unread
    from graphuq.cli.verdict import say_verdict
    from graphuq.external.raster import fit_scene, read_labels, read_scene
    from graphuq.external.raster.maps import FILES, maps_into, next_table, settings_of
    from graphuq.report.scene import write_scene_report
    from graphuq.utils.output_folder import atomic_folder
    from graphuq.utils.progress import reporting

    header = scene.with_suffix(".hdr")
    read = {"SCENE": scene, "the header of SCENE": header, "--labels": labels}
    require_unread(read, output, *FILES, REPORT)
    require(label_column.strip() != "", "--label-column", "empty", "name the column of the classes")
    opened = read_scene(scene)
    known = read_labels(labels, opened, label_column, crs)
    with output_folder(output), reporting(not quiet) as progress:
        fitted = fit_scene(
            opened, known, max_pixels=max_pixels, max_labels=max_labels, progress=progress, **given
        )
        with atomic_folder(output) as folder:
            mapped = maps_into(fitted, folder, progress)
            write_scene_report(
                mapped,
                fitted.trust,
                len(fitted.places),
                folder / REPORT,
                title=f"graphuq: {scene.name}",
                class_names=fitted.classes,
                labelled=fitted.labels.places,
                label_names=fitted.labels.classes,
                next_table=next_table(fitted, mapped.next_places),
                settings=settings_of(fitted),
            )
    facts = the_facts(quiet)
    say_verdict(facts, fitted.trust)
    places = fitted.trust.checks["places"]
    facts.say("{places}" if places.ok else "", places=places.sentence)
    facts.say(
        "{n_labelled} labelled pixels of {n_classes} classes, {n_nodes} nodes",
        n_labelled=len(fitted.labels.classes),
        n_classes=len(fitted.classes),
        n_nodes=len(fitted.places),
    )
    n_pixels = int(mapped.counts.sum())
    rows = [
        {"class": name, "share": count / n_pixels, "mean_probability": mean}
        for name, count, mean in zip(fitted.classes, mapped.counts, mapped.means, strict=True)
    ]
    facts.each(
        "  {class}: {share:.1%} of the pixels, probability {mean_probability:.2f}", classes=rows
    )
    facts.say(
        "{n_pixels:,} pixels → {output}",
        n_pixels=n_pixels,
        output=output,
        files=[output / name for name in (*FILES, REPORT)],
        settings=settings_of(fitted),
    )
