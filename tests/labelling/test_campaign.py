"""The report of a campaign: numbers counted by hand, from the page and from the file alone."""

import json

import pytest

from graphuq.cli.app import run
from graphuq.errors import StorageError
from graphuq.labelling.campaign import BREAK_S, campaign_lines, campaign_of, read_campaign
from graphuq.labelling.campaign_page import campaign_page
from graphuq.labelling.records import Record

HOSTILE = "<script>alert(1)</script>"


def record(second, user, row, label, **more):
    time = f"2026-11-29T{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000+00:00"
    return Record(time, user, row, str(row), label, **more)


RECORDS = [
    record(0, "ada", 0, "cat", expected_errors=20.0),
    record(4, "ada", 1, "dog", expected_errors=10.0),
    record(10, "ada", 2, "dog"),
    record(11, "ada", 2, None, is_undo=True),
    record(1000, "ada", 2, "cat"),  # after a break
    record(1002, "bob", 0, "dog", kind="blind"),
    record(1005, "bob", 1, "dog", kind="blind"),
    record(1010, "bob", 2, "cat", kind="blind"),
    record(1020, "bob", 3, "dog", batch="b"),
    record(1020, "bob", 4, "dog", batch="b"),
    record(1030, "ada", 0, "cat", kind="decision"),
    record(1040, "ada", 5, None, kind="note", text="blurred"),
    record(1050, "ada", 6, None, kind="draw", text="cat", batch="x", model=3, drawn_from=15),
    record(1050, "ada", 7, None, kind="draw", text="cat", batch="x", model=3, drawn_from=15),
    record(1060, "bob", 6, "cat", kind="audit", batch="x"),
    record(1070, "bob", 7, "dog", kind="audit", batch="x"),
]


def test_numbers_are_those_of_the_records():
    found = campaign_of(RECORDS, 20, {9: "cat"})
    assert (found.n_items, found.n_known, found.n_labelled) == (20, 1, 8)
    ada, bob = found.people
    assert (ada.user, ada.n_labels, ada.n_undone) == ("ada", 3, 1)
    assert (bob.user, bob.n_labels, bob.n_undone) == ("bob", 7, 0)
    assert ada.seconds == 5  # of 4, 6, 1 and 30, without the break
    assert ada.hours == pytest.approx(41 / 3600)
    assert bob.seconds == 10  # of 3, 5, 10, 40 and 10
    assert BREAK_S == 300
    assert found.hours_left == pytest.approx(12 * (41 + 68) / 3600 / 10)
    assert found.growth["ada"] == [(0, 1), (4, 2), (10, 3), (11, 2), (1000, 3)]
    assert found.growth["bob"][-1] == (1070, 7)
    assert found.expected == [(0, 20), (4, 10)]
    assert (found.n_disputed, found.n_decided) == (0, 1)
    assert found.agreement.n_items == 3
    assert found.agreement.alpha == pytest.approx(1 - 5 * 2 / (2 * 3 * 3))
    (audit,) = found.audits
    assert audit["result"]["n_answers"] == 2
    assert audit["result"]["n_right"] == 1
    assert audit["drawn_from"] == 15


def write(path, records, n_items=20):
    header = {"format": "graphuq labels", "version": 1, "items": n_items, "digest": "x"}
    path.write_bytes(json.dumps(header).encode() + b"\n" + b"".join(r.to_line() for r in records))


def test_the_file_alone_is_enough(tmp_path, capsys):
    write(tmp_path / "labels.jsonl", RECORDS)
    before = (tmp_path / "labels.jsonl").read_bytes()
    assert read_campaign(tmp_path / "labels.jsonl") == campaign_of(RECORDS, 20)
    assert run(["label-report", str(tmp_path), "-o", str(tmp_path / "report.html")]) == 0
    printed = capsys.readouterr().out
    assert "7 of 20 items have a label" in printed
    assert "all others by hand: 2.4 min of one person at this pace" in printed
    assert "ada: 3 labels, 1 undone, 5 s a label" in printed
    assert (
        "audit of 2026-11-29: 1 of 2 right, accuracy 50.0% (90 % interval 2.5% to 97.5%)" in printed
    )
    assert run(["label-report", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["campaign"]
    assert (found["n_labelled"], found["n_items"]) == (7, 20)
    (ada,) = (person for person in found["people"] if person["user"] == "ada")
    assert (ada["n_labels"], ada["n_undone"], ada["seconds"]) == (3, 1, 5.0)
    page = (tmp_path / "report.html").read_text()
    assert "<style>" in page
    assert "<script" not in page
    assert 'href="' not in page  # nothing from elsewhere
    assert (tmp_path / "labels.jsonl").read_bytes() == before


def test_a_last_line_that_is_not_whole_is_left_out(tmp_path):
    write(tmp_path / "labels.jsonl", RECORDS)
    with (tmp_path / "labels.jsonl").open("ab") as file:
        file.write(b'{"time": "2026')
    assert read_campaign(tmp_path / "labels.jsonl") == campaign_of(RECORDS, 20)


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"id,label\n1,a\n"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "labels.jsonl").write_bytes(content)
    with pytest.raises(StorageError, match=r"not a whole file of labels; name labels\.jsonl"):
        read_campaign(tmp_path / "labels.jsonl")
    assert run(["label-report", str(tmp_path)]) == 2
    assert run(["label-report", str(tmp_path / "nothing")]) == 2


def test_a_report_without_labels():
    found = campaign_of([], 20)
    assert campaign_lines(found)[0] == "0 of 20 items have a label"
    assert "20 are left" in " ".join(campaign_page(found, "Empty").split())


def test_hostile_names_are_text():
    found = campaign_of([record(0, HOSTILE, 0, HOSTILE), record(5, HOSTILE, 1, "a")], 20)
    page = campaign_page(found, HOSTILE)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
