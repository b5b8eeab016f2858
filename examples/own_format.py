"""A format of your own: tables of JSON, one object a line."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import graphuq as gq


class JsonLines(gq.results.TableFormat):
    """One JSON object a line, as NDJSON."""

    suffix = ".ndjson"

    def read(self, path, text_columns=()):
        """Return the table of a file."""
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        frame = pd.DataFrame(rows)
        for name in set(text_columns) & set(frame):
            frame[name] = ["" if row.get(name) is None else str(row[name]) for row in rows]
        return frame

    def write(self, table, path):
        """Write a table to a new file."""
        table.to_json(path, orient="records", lines=True)


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    y = np.where(np.arange(200) < 10, moons.classes, -1)
    classifier = gq.GraphClassifier(inference="expectation-propagation").fit(moons.features, y)
    file = Path(tempfile.mkdtemp()) / "moons.ndjson"
    gq.results.write_table(classifier.result_.to_dataframe(), file)
    print(f"{file.name}: {len(JsonLines().read(file))} rows")
