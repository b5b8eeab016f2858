"""What errors, warnings and verdicts of commands say to do is done by options, or in the file."""

import ast
import json
import re
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest

import graphuq
from graphuq.cli.app import run
from graphuq.cli.remedies import REMEDIES, at_command_line

pytestmark = pytest.mark.filterwarnings("always::graphuq.errors.GraphuqWarning")
OPTIONS = {
    "weights": ("--weights", False),
    "missing_label": ("--missing-label", False),
    "n_eigenpairs": ("--n-eigenpairs", False),
    "tail_eigenvalue": ("--tail-eigenvalue", False),
    "model": ("--model", False),
    "encode": ("--encode", True),
}
PYTHON = re.compile(
    r"\bgq\.|graphuq\.[A-Za-z]|\(result\)|from_adjacency|MCMC\(|add_labels|[a-z]_[a-z]+="
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("use weights='self-tuning'", "use --weights self-tuning"),
        ("use weights=SelfTuning(scale=2)", "use --weights 'SelfTuning(scale=2)'"),
        ("use tail_eigenvalue=False", "use --tail-eigenvalue false"),
        ("add encode=True", "add --encode"),
        ("Leave n_eigenpairs out.", "Leave --n-eigenpairs out."),
        ("pass missing_label='?', or give None in its place.", "add --missing-label '?'."),
        ("solver='dense' is no option", "solver='dense' is no option"),
        ("--missing-label=x, column 'n_eigenpairs'", "--missing-label=x, column 'n_eigenpairs'"),
        ("encode=False stays", "encode=False stays"),
    ],
)
def test_arguments_become_options(said, expected):
    assert at_command_line(said, OPTIONS) == expected


def texts_of_the_package():
    """Yield all texts of the source; what is filled in is a name in quotes."""
    for path in Path(graphuq.__file__).parent.rglob("*.py"):
        if path.name == "remedies.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", "'x'") for part in node.values)
                yield "".join(part if isinstance(part, str) else "'x'" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_each_remedy_is_said_somewhere():
    """A text that changes needs another entry."""
    said = list(texts_of_the_package())
    for remedy, _ in REMEDIES:
        assert any(re.search(remedy, text) for text in said), remedy


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 3 * (np.arange(60) % 2)[:, None]
    classes = np.array(["a", "b"])[np.arange(60) % 2]
    table = pd.DataFrame(
        {"x": X[:, 0], "y": X[:, 1], "label": np.where(np.arange(60) < 8, classes, "")}
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    noise = table.assign(label=np.where(np.arange(60) < 30, rng.choice(["a", "b"], 60), ""))
    noise.to_csv(tmp_path / "noise.csv", index=False)
    codes = table.assign(label=[1, 2, 1, 2] + 56 * [0])
    codes.to_csv(tmp_path / "codes.csv", index=False)
    gaps = table.assign(x=np.where(np.arange(60) % 9 == 3, -999, table["x"]))
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    known = table[:8].assign(id=np.arange(8))[["id", "label"]]
    known.to_csv(tmp_path / "known.csv", index=False)
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    np.save(tmp_path / "distances.npy", apart)
    graph = networkx.karate_club_graph()
    plain = networkx.Graph()
    for a, b in graph.edges:
        plain.add_edge(str(a), str(b), strength=1.0 + a % 3)
    names = {"0": "hi", "1": "hi", "32": "off", "33": "off"}
    networkx.set_node_attributes(plain, {v: names.get(v, "") for v in plain}, "label")
    networkx.write_graphml(plain, tmp_path / "graph.graphml")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("graph.graphml", "rename 'strength' to 'weight' in the file"),
        ("distances.npy --labels known.csv --graph precomputed", "--metric precomputed"),
        ("codes.csv", "add --missing-label 0"),
        ("gaps.csv", "say so: --impute --missing-value=-999"),
        ("noise.csv", "(--n-neighbors, metric)"),
        ("table.csv --inference map", "use --model likeliest"),
        ("table.csv --model OrderedAverage()", "add --ordered, or --class-order"),
        ("table.csv --model largest-evidence --inference map",
         "use --inference expectation-propagation"),
        ("table.csv --n-samples 20 --n-chains 2 --n-warmup 5 --stop none",
         "raise --thin or --n-samples, and --n-warmup"),
    ],
)  # fmt: skip
def test_commands_name_no_python(command, expected, folder, capsys):
    file, *options = command.split()
    options = [str(folder / o) if o.endswith(".csv") else o for o in options]
    if "--labels" not in options:
        options += ["--label-column", "label"]
    run(["classify", str(folder / file), *options, "-o", str(folder / "out"), "--json"])
    found = json.loads(capsys.readouterr().out)
    checks = found.get("verdict", {"checks": {}})["checks"].values()
    said = [one["message"] for one in found["warnings"]]
    said += [check["sentence"] for check in checks if check["level"] != "green"]
    said += [found["error"]["message"]] if "error" in found else []
    assert any(expected in text for text in said), said
    assert not [text for text in said if PYTHON.search(text)]
