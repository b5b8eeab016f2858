"""``graphuq mcp``: a client in this process, the server in another."""

import asyncio
import os
import sys

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import app, classify
from graphuq.cli.tools import Places, Tool, arguments_of
from graphuq.errors import InvalidInput

MOONS = gq.datasets.two_moons(60, n_features=2, noise_std=0.05, rng=1)


@pytest.fixture
def places(tmp_path):
    table = pd.DataFrame(MOONS.features, columns=["a", "b"])
    names = np.array(["left", "right"])[MOONS.classes]
    table["label"] = np.where(np.arange(60) < 8, names, "")
    (tmp_path / "tables").mkdir()
    table.to_csv(tmp_path / "tables" / "moons.csv", index=False)
    table.to_csv(tmp_path / "secret.csv", index=False)
    return tmp_path


async def _talk(folder):
    mcp = pytest.importorskip("mcp", reason="pip install graphuq[mcp], to test the server")
    code = "from graphuq.cli import main; main()"
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-c", code, "mcp", str(folder / "answers"), "--read", str(folder / "tables")],
        env={name: os.environ[name] for name in ("PYTHONPATH", "PATH") if name in os.environ},
        cwd=folder,
    )
    async with mcp.Client(mcp.stdio_client(server)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        async def call(tool, **arguments):
            return (await client.call_tool(tool, arguments)).structured_content

        file = str(folder / "tables" / "moons.csv")
        answer = await call("classify", file=file, label_column="label")
        posterior = str(folder / "answers" / "answer" / "posterior.nc")
        return {
            "tools": tools,
            "classify": answer,
            "query": await call("query", posterior=posterior, n=2),
            "explain": await call("explain", posterior=posterior, row="33"),
            "secret": await call("classify", file="secret.csv", label_column="label"),
            "outside": await call("classify", file=file, label_column="label", name="../x"),
            "option": await call("classify", file=file, label_column="--store=/tmp/x"),
        }


def test_a_client_classifies_queries_and_explains(places):
    found = asyncio.run(_talk(places))
    tools = found["tools"]
    assert set(tools) == {"classify", "query", "explain"}
    schema = tools["classify"].input_schema
    assert schema["required"] == ["file"]
    help_of = {o.name: o.help for o in _options("classify")}
    for name, about in schema["properties"].items():
        if name != "name":
            assert about["description"] == help_of[name]
    assert tools["query"].description.startswith("Name the rows to label next")

    answer = found["classify"]
    assert (answer["command"], answer["exit_status"]) == ("classify", 0)
    out = places / "answers" / "answer"
    assert set(answer["files"]) == {str(path) for path in out.iterdir()}
    stored = gq.load(out / "posterior.nc")
    assert answer["verdict"]["headline"] == stored.result_.trust.headline
    assert [row["id"] for row in found["query"]["next"]] == stored.query(2).astype(str).tolist()
    assert found["explain"]["row"]["id"] == "33"
    assert len(found["explain"]["closest"]) == 5

    for name in ("secret", "outside", "option"):
        assert found[name]["exit_status"] == 2, name
        assert found[name]["error"]["code"] == "invalid-input"
    assert "outside of what this server may read" in found["secret"]["error"]["problem"]
    written = {path.name for path in places.iterdir()}
    assert written == {"tables", "secret.csv", "answers"}
    assert [path.name for path in (places / "answers").iterdir()] == ["answer"]
    assert [path.name for path in (places / "tables").iterdir()] == ["moons.csv"]


def _options(command):
    import typer

    return typer.main.get_command(app).get_command(None, command).params


TOOL = Tool(classify, ["file", "label_column", "labels", "drop", "encode"], writes=True)


def test_a_call_as_a_command_line(places):
    allowed = Places(places / "answers", [places / "tables"])
    file = str(places / "tables" / "moons.csv")
    values = {"file": file, "label_column": "y", "drop": ["a", "-b"], "encode": True}
    assert arguments_of("classify", TOOL, values, allowed) == [
        "classify", "--label-column=y", "--drop=a", "--drop=-b", "--encode",
        f"--output={places / 'answers' / 'answer'}", "--quiet", "--", file,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("file", {"file": "secret.csv"}),
        ("file", {"file": "tables/../secret.csv"}),
        ("file", {"file": "tables/link.csv"}),
        ("file", {"file": "/etc/passwd"}),
        ("--labels", {"file": "tables/moons.csv", "labels": "secret.csv"}),
        *(
            ("name", {"file": "tables/moons.csv", "name": name})
            for name in ("", "..", "a/b", "/x", "x\\y")
        ),
        ("name", {"file": "tables/moons.csv", "name": "away"}),
    ],
)
def test_places_outside_are_refused(argument, values, places, monkeypatch):
    monkeypatch.chdir(places)
    (places / "tables" / "link.csv").symlink_to(places / "secret.csv")
    (places / "answers").mkdir()
    (places / "answers" / "away").symlink_to(places)
    with pytest.raises(InvalidInput) as refused:
        arguments_of("classify", TOOL, values, Places(places / "answers", [places / "tables"]))
    assert refused.value.argument == argument
