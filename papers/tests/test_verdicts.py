"""The list of tables, figures and claims, with what the last run said of each."""

import json

import pytest

from graphuq.cli.app import run
from graphuq_papers.catalogue import PAPERS


def test_the_list_has_every_claim_of_every_paper(tmp_path, capsys):
    assert run(["reproduce", "--all", "--list", "-o", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for paper, experiments in PAPERS.items():
        for name, one in experiments.items():
            place = lines.index(f"{paper} {name}: {one.title}")
            claims = [f"  not run: {claim.sentence}" for claim in one.claims]
            assert lines[place + 1 : place + 1 + len(claims)] == claims
    assert not list(tmp_path.iterdir()), "a list writes nothing"


def test_the_list_has_the_verdict_of_the_last_run(tmp_path, capsys):
    asked = ["reproduce", "hartog", "-o", str(tmp_path)]
    assert run([*asked, "figure1", "--quick", "--random-state", "3"]) == 0
    capsys.readouterr()
    assert run([*asked, "--list"]) == 0
    claim = PAPERS["hartog"]["figure1"].claims[0].sentence
    printed = capsys.readouterr().out
    assert f"  holds (quick, random state 3): {claim}\n" in printed
    assert "  not run: A larger ρ leads to fewer eigenvectors, k.\n" in printed
    assert run([*asked, "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["experiments"][0]["claims"]
    assert [one["status"] for one in found] == ["holds"]
    assert "flipped by noise" in found[0]["figures"]


@pytest.mark.parametrize("content", ["", "[]", '{"claims": 3, "settings": []}'])
def test_a_file_of_another_kind_is_named(content, tmp_path, capsys):
    (tmp_path / "figure1.json").write_text(content)
    assert run(["reproduce", "hartog", "--list", "-o", str(tmp_path)]) != 0
    assert "figure1.json" in capsys.readouterr().err
