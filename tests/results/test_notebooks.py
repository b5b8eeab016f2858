"""What a notebook shows of a result, of its verdict, and of a fitted classifier."""

import re
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn

import graphuq as gq
from graphuq.results import map_html, summary_html
from graphuq.results.trust.base import Check, Trust
from graphuq.utils.class_colors import NUMBER_COLORS

HOSTILE = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a & b {{ 7 * 7 }}"]


@pytest.fixture(scope="module")
def fitted():
    """Three clusters of 40 rows, whose classes have hostile names; nine labels."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    X = 4.0 * np.eye(3)[truth] + rng.normal(size=(120, 3))
    y = np.full(120, None, dtype=object)
    given = np.concatenate([np.arange(3) + 40 * k for k in range(3)])
    y[given] = np.array(HOSTILE, dtype=object)[truth[given]]
    return gq.GraphClassifier().fit(X, y)


def tree(fragment):
    """The fragment as a tree of elements; it must be well-formed."""
    return ElementTree.fromstring(fragment)


def cells(fragment):
    """The text of the cells of each row of the table of classes."""
    (table,) = tree(fragment).iter("table")
    return [["".join(cell.itertext()).strip() for cell in row] for row in table.iter("tr")]


def n_dots(fragment):
    """Numbers of dots on the map: of labelled nodes below theirs, and of all nodes."""
    kinds = [(p.get("class"), p.get("d").count("h0")) for p in tree(fragment).iter("path")]
    return sum(n for kind, n in kinds if kind == "given"), sum(n for k, n in kinds if k != "given")


def test_a_result_shows_verdict_errors_classes_and_a_map(fitted):
    result = fitted.result_
    shown = result._repr_html_()
    words = " ".join("".join(tree(shown).itertext()).split())
    assert result.trust.level.upper() in words
    assert all(reason in words for reason in result.trust.reasons)
    assert "120 nodes, 9 labelled, 3 classes" in words
    errors = gq.expected_errors(result)
    assert f"about {errors.expected:,.0f} of 111 inferred labels are wrong" in words
    assert f"({errors.lower:,.0f} to {errors.upper:,.0f} with" in words
    best = result.probabilities.argmax(axis=1)
    p = result.probabilities.max(axis=1)
    expected = [
        [f"● {name}", "3", f"{(best == k).sum()}", f"{p[best == k].mean():.3f}"]
        for k, name in enumerate(result.classes)
    ]
    header, *rows = cells(shown)
    assert header == ["class", "given", "inferred", "mean probability"]
    assert [[gq.errors.shortened(c[0], 99), *c[1:]] for c in rows] == expected
    assert n_dots(shown) == (9, 120)
    for line in str(result).splitlines()[-3:]:
        assert line in "".join(tree(shown).itertext())


def test_names_of_classes_are_inert(fitted):
    for shown in (fitted.result_._repr_html_(), fitted._repr_html_()):
        own = shown.split('class="sk-')[0]
        assert "<script" not in own
        assert "<img" not in own
        assert not re.search(r"\son\w+=", re.sub(r">[^<]*<", "><", own))
        assert "&lt;script&gt;" in own


def test_a_long_name_and_a_lone_surrogate_are_shown(fitted):
    result = gq.results.with_classes(fitted.result_, ["x" * 1000, "\ud800", "b"])
    shown = result._repr_html_()
    assert shown.encode("utf-8")
    table = cells(shown.replace("&#55296;", "?"))  # no character of XML
    assert [len(row[0]) for row in table[1:]] == [42, 3, 3]


def test_a_large_result_has_a_sample_and_some_classes(fitted, monkeypatch):
    monkeypatch.setattr(map_html, "MAX_NODES", 50)
    monkeypatch.setattr(map_html, "MAX_OUTLINED", 5)
    monkeypatch.setattr(summary_html, "MAX_CLASSES", 2)
    fresh = gq.results.with_classes(fitted.result_, ["a", "b", "c"])
    shown = fresh._repr_html_()
    assert n_dots(shown)[1] <= 50
    assert n_dots(shown)[0] >= 5
    assert len(cells(shown)) == 3
    assert "and 1 more classes" in shown
    assert re.search(r"\d+ of 120 nodes", shown)


def test_a_point_says_what_it_does_not_know():
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.1, rng=1)
    y = np.where(np.arange(60) < 10, moons.classes, -1)
    classifier = gq.GraphClassifier(model="largest-evidence", inference="map")
    shown = classifier.fit(moons.features, y).result_._repr_html_()
    assert "does not tell how many labels are wrong" in shown
    assert "RED" in shown


def test_a_classifier_shows_its_answer_and_its_parameters(fitted):
    fresh = gq.GraphClassifier()
    assert "graphuq-answer" not in fresh._repr_html_()
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == repr(fitted)
    assert 'class="graphuq-answer"' in shown["text/html"]
    assert "sk-estimator" in shown["text/html"]
    with sklearn.config_context(display="text"):
        assert "text/html" not in fitted._repr_mimebundle_()


def test_a_classifier_with_class_proportions_counts_its_own_labels():
    moons = gq.datasets.two_moons(80, n_features=2, noise_std=0.3, rng=1)
    y = np.where(np.arange(80) < 10, moons.classes, -1)
    shares = {1: 0.7, 2: 0.3}
    shares = dict(zip(np.unique(moons.classes).tolist(), shares.values(), strict=True))
    classifier = gq.GraphClassifier(class_proportions=shares).fit(moons.features, y)
    _, *rows = cells(classifier._repr_html_().split("</section>")[0] + "</section>")
    own = [(classifier.transduction_ == name).sum() for name in classifier.classes_]
    assert [int(row[2]) for row in rows] == own


@pytest.fixture(scope="module")
def regressor():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 90))[:, None]
    y = np.where(np.arange(90) % 3 == 0, 5e4 + 300 * np.sin(x[:, 0]) + rng.normal(size=90), np.nan)
    return gq.GraphRegressor().fit(x, y), x, y


def test_a_regressor_shows_its_answer_and_its_parameters(regressor):
    fitted, _, y = regressor
    assert "graphuq-answer" not in gq.GraphRegressor()._repr_html_()
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == repr(fitted)
    assert "sk-estimator" in shown["text/html"]
    own = shown["text/html"].split("</section>")[0] + "</section>"
    assert "<script" not in own
    words = " ".join("".join(tree(own).itertext()).split())
    given = np.flatnonzero(~np.isnan(y))
    mean, std = fitted.leave_one_out()
    assert "90 rows, 30 with a number" in words
    error = np.sqrt(np.mean((y[given] - mean) ** 2))
    assert f"are off by {error:,.0f} (root mean square)" in words
    assert f"deviation is {np.std(y[given]):,.0f}, and that of the noise" in words
    header, *rows = cells(own)
    z = np.abs(y[given] - mean) / std
    bounds = {"50%": 0.6744898, "80%": 1.2815516, "90%": 1.6448536, "95%": 1.9599640}
    assert header == ["interval", "holds"]
    assert rows == [[name, f"{(z <= bound).mean():.1%}"] for name, bound in bounds.items()]
    assert n_dots(own) == (30, 90)


def test_the_map_of_a_regressor_has_the_colours_of_its_predictions(regressor):
    fitted, _, _ = regressor
    root = tree(fitted._repr_html_().split("</section>")[0] + "</section>")
    counts = {p.get("class"): p.get("d").count("h0") for p in root.iter("path")}
    low, high = np.quantile(fitted.transduction_, [0.02, 0.98])
    share = np.clip((fitted.transduction_ - low) / (high - low), 0, 1 - 1e-9)
    expected = np.bincount((5 * share).astype(int), minlength=5)
    assert [counts.get(f"v{k}", 0) for k in range(5)] == expected.tolist()
    assert f"Predicted: {low:,.0f} ●●●●● {high:,.0f}" in "".join(root.itertext())


def test_colours_of_numbers_are_those_of_the_report():
    script = (resources.files("graphuq") / "web" / "points.js").read_text(encoding="utf-8")
    for theme, colors in NUMBER_COLORS.items():
        listed = ", ".join(f'"{color}"' for color in reversed(colors))
        assert f"{theme}: [{listed}]" in script


@pytest.mark.parametrize("level", ["green", "amber", "red"])
def test_a_verdict_shows_each_check(level):
    checks = {
        "certainty": Check(1.0, 0.2, "green", "Fine & well."),
        "labels_per_class": Check(1.0, 2.0, level, "<b>One</b> label."),
    }
    root = tree(Trust(checks)._repr_html_())
    (badge,) = root.iter("b")
    assert badge.get("class") == level
    assert level.upper() in badge.text
    (table,) = root.iter("table")
    found = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")][1:]
    marks = {"green": "✓", "amber": "!", "red": "✗"}
    assert found == [["✓ certainty", "Fine & well."],
                     [f"{marks[level]} labels per class", "<b>One</b> label."]]  # fmt: skip
    assert [item.text for item in root.iter("li")] == ["<b>One</b> label."] * (level != "green")
