"""What the papers claim: every experiment runs, and its findings are those on the paper's page."""

import re
from pathlib import Path

import pytest

from graphuq.cli.app import run
from graphuq_papers.base import Context, write_outcome
from graphuq_papers.bertozzi import variance
from graphuq_papers.catalogue import PAPERS
from graphuq_papers.claims import Claim, Judged, Verdict, claims_text, falls, finding, rises

DOCS = Path(__file__).parents[2] / "docs"
ALL = [(paper, name) for paper, experiments in PAPERS.items() for name in experiments]
QUICK = {  # the others take more than two seconds
    ("bertozzi", "figure1"),
    ("chen", "figure1"),
    *(("hartog", f"figure{k}") for k in (1, 3, 6, 7)),
}
WITHOUT_FIGURE = {
    ("bertozzi", "optimum"),
    ("bertozzi", "table2"),
    ("chen", "figure6"),
    ("chen", "figure7"),
    ("chen", "updates"),
    ("zhu", "table1"),
    ("zhu", "approximations"),
    ("zhu", "outside"),
}
pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def on_the_page(paper, label, claim):
    """Return the verdict on a claim that the paper's page prints."""
    page = " ".join((DOCS / f"{paper}.md").read_text(encoding="utf-8").split())
    found = re.search(re.escape(f"**{label}**: {claim.sentence} *") + r"([^*]+)\*: ", page)
    assert found, f"docs/{paper}.md lacks: {label}, {claim.sentence}"
    return Verdict(found[1].lower())


def test_every_experiment_has_a_claim_on_the_page_of_its_paper():
    assert len(ALL) >= 59
    for paper, name in ALL:
        experiment = PAPERS[paper][name]
        assert experiment.claims, f"{paper} {name}"
        for claim in experiment.claims:
            assert claim.sentence.endswith("."), claim.sentence
            on_the_page(paper, experiment.label, claim)


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        pytest.param(*key, id=" ".join(key), marks=() if key in QUICK else pytest.mark.slow)
        for key in ALL
    ],
)
def test_findings(paper, name, data_folder, tmp_path):
    """Verdicts of a quick run are those on the page, except where they are about time."""
    experiment = PAPERS[paper][name]
    outcome = experiment.run(Context(quick=True, folder=data_folder))
    assert outcome.text.rstrip().endswith(".")
    assert (outcome.figure is None) == ((paper, name) in WITHOUT_FIGURE)
    written = write_outcome(outcome, tmp_path, name)
    assert all(path.stat().st_size > 0 for path in written)
    for label, claim, (verdict, figures) in experiment.judge(outcome):
        assert re.search(r"\d", figures), "a verdict rests on a number"
        if not claim.of_time:
            assert verdict == on_the_page(paper, label, claim), f"{claim.sentence} {figures}"


@pytest.mark.parametrize(
    ("converged", "protocol", "verdict"),
    [
        (True, None, Verdict.HOLDS),
        (True, True, Verdict.HOLDS),
        (True, False, Verdict.CONVERGED_ONLY),
        (False, True, Verdict.FAILS),
        (False, None, Verdict.FAILS),
    ],
)
def test_verdict(converged, protocol, verdict):
    assert finding(converged, "1", protocol).verdict == verdict


def test_doubt_is_named():
    assert finding(True, "1 of 2", rhat=1.02).figures == "1 of 2 (R-hat 1.020)"
    assert finding(True, "1 of 2", rhat=1.009).figures == "1 of 2"


def test_trends_allow_for_errors():
    assert rises([1.0, 2.0, 3.0])
    assert falls([3.0, 2.0, 1.0])
    assert not rises([1.0, 3.0, 2.0])
    assert not rises([1.0, 1.0])
    assert rises([1.0, 3.0, 2.9, 4.0], [0.1] * 4)
    assert not rises([1.0, 3.0, 2.5, 4.0], [0.1] * 4)


def test_list_of_claims_has_short_lines():
    words = "A long sentence about label variance and the noise of features."
    claim = Claim(words, lambda rows: finding(True, "1"))
    text = claims_text([Judged("Figure 6", claim, finding(True, ", ".join(["0.123"] * 20)))])
    assert text.startswith("- **Figure 6**: A long sentence")
    assert " *Holds*: 0.123," in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def table1_rows(converged, protocol):
    return [
        {
            "model": model,
            "paper": paper,
            "converged": a,
            "converged, 50 pairs": a,
            "protocol": b,
            "protocol, 50 pairs": b,
            "largest R-hat": 1.0,
        }
        for model in variance.MODELS
        for paper, a, b in zip(variance.PAPER[model], converged, protocol, strict=True)
    ]


@pytest.mark.parametrize(
    ("converged", "protocol", "verdicts"),
    [
        ((0.14, 0.1, 0.046, 0.0102), (0.14, 0.1, 0.046, 0.0102), ("holds", "holds")),
        ((0.14, 0.1, 0.046, 0.0102), (0.1, 0.14, 0.05, 0.01), ("holds converged only",) * 2),
        ((0.5, 0.4, 0.2, 0.1), (0.14, 0.1, 0.046, 0.0102), ("holds", "does not hold")),
        ((0.4, 0.5, 0.2, 0.1), (0.5, 0.4, 0.2, 0.1), ("does not hold",) * 2),
    ],
)
def test_table1_is_judged_by_its_numbers(converged, protocol, verdicts):
    rows = table1_rows(converged, protocol)
    found = [claim.judge(rows).verdict for claim in PAPERS["bertozzi"]["table1"].claims]
    assert tuple(found) == verdicts


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"converged": [0.3, 0.2, 0.4]}, "does not hold"),
        ({"protocol": [0.3, 0.2, 0.1]}, "holds converged only"),
    ],
)
def test_curves_are_judged_by_their_numbers(changes, verdict):
    columns = {"converged": [0.2, 0.3, 0.4], "protocol": [0.2, 0.3, 0.4]} | changes
    rows = [
        {
            "data": "two moons",
            "model": model,
            **{name: values[k] for name, values in columns.items()},
            "standard error": 0.01,
            "largest R-hat": 1.0,
        }
        for model in variance.MODELS
        for k in range(3)
    ]
    (claim,) = PAPERS["bertozzi"]["figure6"].claims
    assert claim.judge(rows).verdict == verdict


def test_eigenvectors_are_judged_by_their_numbers():
    (claim,) = PAPERS["chen"]["figure1"].claims
    correlation, share = (
        "|correlation with the class|",
        "share of the class's variance that nine leave",
    )
    rows = [{correlation: value} for value in (0.0, 0.8, 0.1)] + [{share: 0.3}]
    assert claim.judge(rows).verdict == "holds"
    assert claim.judge(rows[::-1]).verdict == "holds", "q_1 is in the middle"
    assert claim.judge([rows[0], rows[2], rows[1], rows[3]]).verdict == "does not hold"


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ({}, ("holds", "holds")),
        ({"estimate": 0.15}, ("does not hold", "holds")),
        ({"estimate": 0.9}, ("does not hold", "holds")),
        ({"distance with a tail at λ̄": 0.2}, ("holds", "does not hold")),
        ({"estimate": 0.001, "move of label means": 0.04}, ("holds", "does not hold")),
    ],
)
def test_truncation_is_judged_by_its_numbers(changes, verdicts):
    row = {
        "move of label means": 0.4,
        "estimate": 0.3,
        "distance with a tail at λ̄": 0.03,
    }
    rows = [
        {"prior": prior, "ℓ": 20} | row | (changes if prior == "c/λ" else {})
        for prior in ("c/λ", "Matérn (default)")
    ]
    found = [claim.judge(rows).verdict for claim in PAPERS["bertozzi"]["truncation"].claims]
    assert tuple(found) == verdicts


@pytest.mark.slow
def test_all_papers_on_one_page(tmp_path, monkeypatch, capsys):
    kept = {"bertozzi": ("figure1",), "hartog": ("figure1", "figure6")}
    for paper, experiments in PAPERS.items():
        chosen = {name: experiments[name] for name in kept.get(paper, ())}
        monkeypatch.setitem(PAPERS, paper, chosen)
    assert run(["reproduce", "--all", "--quick", "-o", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    printed = " ".join(capsys.readouterr().out.split())
    for paper, names in kept.items():
        for name in names:
            claim = PAPERS[paper][name].claims[0]
            assert (tmp_path / paper / f"{name}.csv").exists()
            assert f'id="{paper}-{name}"' in page
            verdict = '<td class="left"><strong>holds</strong>'
            assert f'<td class="left">{claim.sentence}</td>{verdict}' in page
            assert f"{claim.sentence} *Holds*: " in printed


def test_a_paper_must_be_named(capsys):
    assert run(["reproduce", "--quick"]) == 2
    assert "PAPER" in capsys.readouterr().err
