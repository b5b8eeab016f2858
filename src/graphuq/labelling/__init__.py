"""Labelling by people: a page in the browser, a file of labels, and the loop between them.

`graphuq.label` opens the page. Here are the parts that teams name: who may open it from elsewhere,
and how far people agree.
"""

from graphuq.labelling.agreement import Agreement, krippendorff_alpha
from graphuq.labelling.hosting import Hosting

__all__ = ["Agreement", "Hosting", "krippendorff_alpha"]
