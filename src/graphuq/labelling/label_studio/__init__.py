"""Exchange with Label Studio: its files, and its protocol for models, which proposes tasks.

Label Studio is another program for labelling. `tasks` makes a file of tasks with predictions for
it, `annotations` and `predictions` read its exports, and `serve` answers a running Label Studio.
"""

from graphuq.labelling.label_studio.config import Choices, label_config, parse_config
from graphuq.labelling.label_studio.exchange import annotations, predictions, tasks
from graphuq.labelling.label_studio.server import ModelServer, serve

__all__ = [
    "Choices",
    "ModelServer",
    "annotations",
    "label_config",
    "parse_config",
    "predictions",
    "serve",
    "tasks",
]
