"""The page of benchmarks by commit, on made-up histories in which one commit is slower."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import history

SCRIPT = Path(history.__file__)


def made_up(factors, machine="box, 2 cores", seed=0, name="graph", seconds=2.0):
    """Return one record for each factor of the seconds, with noise of a tenth."""
    rng = np.random.default_rng(seed)
    return [
        {
            "commit": f"c{k:03d}",
            "date": f"2026-01-{k + 1:02d} 10:00",
            "machine": machine,
            "load": 0.1,
            "versions": {"python": "3.12.1", "numpy": "2.3.0"},
            "seconds": {name: seconds * factor * rng.uniform(0.95, 1.05), "still": 1.0},
        }
        for k, factor in enumerate(factors)
    ]


def test_the_slower_commit_is_seen_and_no_other():
    found = history.changes(made_up([1, 1, 1, 1, 1.6, 1.6, 1.6, 1.6]))
    assert [(name, row["commit"]) for name, row, _, _ in found] == [("graph", "c004")]
    assert found[0][3] == pytest.approx(1.6, abs=0.2)
    assert re.fullmatch(
        r"graph: [12]\.\d* s .* c004 .*, 1\.\d times slower", history.sentence(found[0])
    )


def test_a_faster_commit_is_seen():
    ((name, row, before, ratio),) = history.changes(made_up([1, 1, 1, 0.5, 0.5]))
    assert (name, row["commit"]) == ("graph", "c003")
    assert ratio < 0.6
    assert before == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_a_change(seed):
    assert history.changes(made_up([1] * 12, seed=seed)) == []


def test_machines_are_not_compared():
    mixed = made_up([1, 1]) + made_up([3, 3], machine="old, 1 core") + made_up([1])
    assert history.changes(mixed) == []


def test_the_page_shows_the_slower_commit_machine_versions_and_dates(tmp_path, monkeypatch):
    records = made_up([1, 1, 1, 1.5], machine="box <1>") + made_up([1], machine="other")
    (tmp_path / "mine.json").write_text(json.dumps(records))
    monkeypatch.setattr(sys, "argv", ["history", "page", "--history", str(tmp_path / "mine.json")])
    history.main()
    text = (tmp_path / "mine.html").read_text(encoding="utf-8")
    slower, faster = re.findall(r"<ul>(.*?)</ul>", text, re.S)
    assert "c003" in slower
    assert slower.count("<li>") == 1
    assert faster == "<li>nothing</li>"
    for words in ("box &lt;1&gt;", "other", "2026-01-04 10:00", "python 3.12.1", "load 0.1"):
        assert words in text
    assert text.count("<img alt=") == 2
    assert text.index("c003</th>") < text.index("c000</th>")  # the newest first


def test_every_command_is_a_benchmark():
    assert 4 <= len(history.COMMANDS) <= 6
    for words, _ in history.COMMANDS.values():
        assert (SCRIPT.parent / words.split()[0]).exists()


def test_numbers_are_read_from_what_the_benchmarks_write():
    stages = {"graph": 1.0, "eigenpairs": 2.0, "evidence": 3.0, "posterior": 4.0}
    assert sum(history.from_scale(stages).values()) == 7
    loop = {"fit": [1.0, 9.0], "query": [[1.0, 9], [2.0, 9]], "add_labels": [[3.0, 9]]}
    found = history.from_loop(loop | {"report": [4.0, 9.0]})
    assert found == {
        "loop: fit": 1.0,
        "loop: query": 3.0,
        "loop: add_labels": 3.0,
        "loop: report": 4.0,
    }
    rows = [
        {"method": m, "form": "full", "us_a_chain_step": 7.0}
        for m in ("literal", "graphuq float64")
    ]
    assert history.from_chain(rows) == {"chain: million steps (full)": 7.0}
