"""Names of the classes of a raster, where GDAL and QGIS look for them: in a file beside it.

A GeoTIFF has colours of values, but no names. GDAL reads them from a file of the same name with the
suffix ``.aux.xml``: category names, which are the legend of a raster with colours in QGIS, and a
raster attribute table, which ArcGIS and newer versions of QGIS show.
"""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Int

SUFFIX = ".aux.xml"
INTEGER, TEXT = "0", "2"  # types of columns, by GDAL's numbers
COLUMNS = {  # type and use of each, by GDAL's numbers
    "Value": (INTEGER, "5"),
    "Class": (TEXT, "2"),
    "Count": (INTEGER, "1"),
    "Red": (INTEGER, "6"),
    "Green": (INTEGER, "7"),
    "Blue": (INTEGER, "8"),
}


def write_attribute_table(
    raster: Path,
    names: Sequence[str],
    counts: Int[np.ndarray, " K"],
    colours: Int[np.ndarray, "K 3"],
) -> None:
    """Write names, numbers of pixels and colours of the values 1 to K of a raster.

    Parameters
    ----------
    raster : path
        The file is written beside it.
    names : sequence of str, length K
        Characters that no text of XML may have are left out.
    counts : numpy.ndarray of int, shape (K,)
    colours : numpy.ndarray of int, shape (K, 3)
        Red, green and blue, from 0 to 255.
    """
    shown = ["".join(c for c in name if c.isprintable()) for name in names]
    root = ElementTree.Element("PAMDataset")
    band = ElementTree.SubElement(root, "PAMRasterBand", band="1")
    categories = ElementTree.SubElement(band, "CategoryNames")
    for name in ["no data", *shown]:  # of the values from 0
        ElementTree.SubElement(categories, "Category").text = name
    table = ElementTree.SubElement(band, "GDALRasterAttributeTable", tableType="thematic")
    for index, (column, (kind, use)) in enumerate(COLUMNS.items()):
        field = ElementTree.SubElement(table, "FieldDefn", index=str(index))
        for tag, text in (("Name", column), ("Type", kind), ("Usage", use)):
            ElementTree.SubElement(field, tag).text = text
    for k, (name, count, colour) in enumerate(zip(shown, counts, colours, strict=True)):
        row = ElementTree.SubElement(table, "Row", index=str(k))
        for value in (k + 1, name, count, *colour):
            ElementTree.SubElement(row, "F").text = str(value)
    ElementTree.indent(root)
    beside = raster.with_name(raster.name + SUFFIX)
    ElementTree.ElementTree(root).write(beside, encoding="utf-8")
