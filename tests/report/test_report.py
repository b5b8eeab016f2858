"""Scores, figures, report and data sets."""

import base64
import doctest
import hashlib
import io
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

import graphuq as gq
from graphuq.datasets.base import RemoteFile, locate
from graphuq.errors import InvalidInput, StorageError
from graphuq.report.calibration import with_calibration

GUIDE = Path(__file__).parents[2] / "docs" / "report.md"


@pytest.fixture(scope="module")
def fitted():
    moons = gq.datasets.two_moons(150, n_features=2, noise_std=0.1)
    y = np.where(np.arange(150) < 10, moons.classes, -1)
    return gq.GraphClassifier(n_neighbors=8).fit(moons.features, y), moons


@pytest.fixture(scope="module")
def drawn(fitted, tmp_path_factory):
    """Return a report of all parts, and the figures that it left open in pyplot."""
    from matplotlib import pyplot as plt

    classifier, moons = fitted
    path = tmp_path_factory.mktemp("report") / "report.html"
    plt.close("all")
    gq.write_report(
        classifier.result_,
        path,
        title="<moons & co>",
        class_names=("upper", "lower"),
        truth=moons.signs(1),
        images=np.random.default_rng(0).uniform(size=(150, 4, 4)),
    )
    return path.read_text(), plt.get_fignums()


def test_scores_by_hand():
    mean, truth = np.array([0.9, -0.8, 0.1, -0.2]), np.array([1.0, -1.0, -1.0, -1.0])
    assert gq.scores.accuracy(mean, truth) == 0.75
    assert gq.scores.accuracy(mean, truth, labelled=[2]) == 1.0
    shares = gq.scores.accuracy_by_certainty(mean, truth, (0.5, 1.0))
    assert shares == {0.5: 1.0, 1.0: 0.75}
    with pytest.raises(InvalidInput, match="one true label"):
        gq.scores.accuracy(mean, truth[:2])


def test_report_stands_alone(fitted, drawn):
    (classifier, moons), (html, _) = fitted, drawn
    assert "&lt;moons &amp; co&gt;" in html
    assert classifier.result_.diagnostics.verdict in html
    scored = gq.scores.where_known(
        gq.results.label_mean(classifier.result_),
        moons.signs(1),
        classifier.result_.posterior.labelled,
    )
    trust = with_calibration(classifier.result_.trust, scored)
    assert f'<div class="verdict {trust.level}"><b>{trust.headline}</b>' in html
    assert html.count('src="data:image/png;base64,') == 6 + 2 * 20  # 20 nodes in each list
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert "accuracy" in html
    assert "expected calibration error" in html


def cards_of(page):
    found = re.findall(r'<div class="card"><b>(.*?)</b>(.*?)</div>', page, re.DOTALL)
    return {words.split(":")[0]: (value, words) for value, words in found}


def test_errors_left_have_an_interval(fitted, drawn):
    """Σ (1 − max p) over unlabelled nodes, and how many labels are really wrong."""
    classifier, moons = fitted
    result, cards = classifier.result_, cards_of(drawn[0])
    value, words = cards["errors left"]
    expected = (1 - (1 + np.abs(gq.results.label_mean(result)[10:])) / 2).sum()
    assert value == f"{expected:.0f}"
    lower, upper = map(int, re.findall(r"interval (\d+) to (\d+)", words)[0])
    assert lower < expected < upper
    wrong = int((gq.results.labels(result)[10:] != moons.signs(1)[10:]).sum())
    assert f"{wrong} wrong labels among 140" in cards["true accuracy"][1]


def test_the_first_screen_answers_five_questions(fitted, drawn):
    """Each node to label next is one row: its picture, its name, and its two classes."""
    result, page = fitted[0].result_, drawn[0]
    questions = re.findall(r"<h2[^>]*>([^<]*\?)</h2>", page)
    assert questions == [
        "May I rely on it?",
        "What did it say?",
        "How sure is it?",
        "What should I check?",
        "What should I label next?",
    ]
    part = page.split("What should I label next?")[1].split("</section>")[0]
    rows = re.findall(r"<tr>(<td.*?)</tr>", part, re.DOTALL)
    nodes = gq.acquisition.query(result, 20)
    assert len(rows) == len(nodes) == 20
    for row, node in zip(rows, nodes, strict=True):
        assert row.count("<img") == 1
        cells = [re.sub(r"<[^>]*>", "", cell).split() for cell in row.split("</td>")]
        assert cells[1] == [str(node)]
        p = result.probabilities[node]
        order = np.argsort(p)[::-1]
        names = np.array(["upper", "lower"])[order]
        assert cells[2][:2] == [names[0], f"{p[order[0]]:.3f}"]
        assert cells[3] == [names[1], f"{p[order[1]]:.3f}"]
    uncertain = (result.probabilities[10:].max(axis=1) < 0.95).sum()
    assert f"Uncertain: {uncertain} unlabelled nodes" in page
    assert not re.search(r'<details class="part" open', page)  # hyperparameters are closed
    assert "Good answers stand at both ends" in page  # of the histogram, which has label means


def test_report_of_a_point_says_what_it_cannot_know(fitted, tmp_path):
    _, moons = fitted
    y = np.where(np.arange(150) < 10, moons.classes, -1)
    classifier = gq.GraphClassifier(n_neighbors=8, model="largest-evidence", inference="map")
    result = classifier.fit(moons.features, y).result_
    with pytest.raises(gq.errors.IncompatibleParts, match="gives a point without uncertainty"):
        gq.expected_errors(result)
    gq.write_report(result, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert cards_of(page)["errors left"][0] == "–"
    assert "A point estimate cannot tell" in page


def test_the_guide_names_every_part_of_the_report(drawn):
    parts = re.findall(r"<h2[^>]*>(.*?)</h2>|<summary>(.*?)</summary>", drawn[0])
    named = {heading or summary for heading, summary in parts}
    guide = GUIDE.read_text(encoding="utf-8")
    assert len(named) > 10
    assert [name for name in named if f"**{name}**" not in guide] == []


@pytest.mark.slow  # 1,797 digits
def test_the_example_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert (failed, tried) == (0, 7)
    assert "<h1>Handwritten digits</h1>" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_every_figure_has_a_dark_version(drawn):
    """Its background is that of the dark page, whose colour is in page.css."""
    page = drawn[0]
    dark = re.findall(r'dark\)" srcset="data:image/png;base64,([^"]*)">', page)
    assert len(dark) == page.count("<img class=") > 4
    back = re.search(r"color-scheme: dark\) {\s*:root {.*?--back: (#\w+)", page, re.DOTALL)[1]
    for data in dark:
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
        colors, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
        most = colors[counts.argmax()]
        assert np.abs(most.astype(int) - np.rint(255 * np.array(to_rgb(back)))).max() <= 2


def one_panel(fitted):
    """Every function that draws one panel, as a function of ``ax``."""
    result = fitted[0].result_
    curve = gq.scores.reliability_curve(gq.results.label_mean(result), fitted[1].signs(1))
    grid = {"n_neighbors": [3, 6, 12]}, [-9.0, -8.0, -8.5], {"n_neighbors": 6}
    return [
        partial(gq.plots.plot_spectrum, result.posterior.spectrum),
        partial(gq.plots.plot_embedding, result),
        partial(gq.plots.plot_map, result),
        partial(gq.plots.plot_certainty, result),
        partial(gq.plots.plot_order, result),
        partial(gq.plots.plot_reliability, curve),
        partial(gq.plots.plot_evidence, *grid),
    ]


def several_panels(fitted):
    """Every function that draws several panels, as a function of ``axes``, and their number."""
    result = fitted[0].result_
    nodes, images = np.array([2, 50, 149]), np.zeros((150, 4, 4))
    return [
        (partial(gq.plots.plot_trace, result), 2),
        (partial(gq.plots.plot_ess, result), 2),
        (partial(gq.plots.plot_marginals, result, nodes), 3),
        (partial(gq.plots.plot_images, result, images, nodes), 3),
    ]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_many", [10, 20_000])
def test_every_plot_draws_into_the_given_axes(fitted, n_many, monkeypatch, tmp_path):
    monkeypatch.setattr("graphuq.plots.maps.MANY_NODES", n_many)
    for draw in one_panel(fitted):
        _, (left, right) = gq.plots.panels(2, 2)
        assert draw(ax=right) is right
        assert right.has_data()
        assert not left.has_data()
        assert right.get_xlabel()
        assert right.get_ylabel() or not len(right.get_yticks())
        assert right.get_title()
        right.figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5000
    for draw, n_panels in several_panels(fitted):
        _, axes = gq.plots.panels(n_panels + 1, 3)
        drawn = draw(axes=axes)
        assert list(drawn) == list(axes[: len(drawn)])
        assert all(ax.has_data() for ax in drawn)
        assert not axes[-1].has_data()
        if len(drawn) > 1:  # the log likelihood may be the slowest functional of a trace
            with pytest.raises(InvalidInput, match="axes: 1 panels; give"):
                draw(axes=axes[0])


def test_without_axes_a_plot_is_a_new_pyplot_figure(fitted):
    """Each new figure is managed by pyplot; the figures of a report are not."""
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    plt.close("all")
    for draw in one_panel(fitted):
        ax = draw()
        assert plt.get_fignums() == [ax.figure.number]
        plt.close(ax.figure)
    for draw, n_panels in several_panels(fitted):
        axes = draw()
        assert len(axes) <= n_panels
        assert plt.get_fignums() == [axes[0].figure.number]
        plt.close(axes[0].figure)


def test_figures_of_a_report_stay_outside_pyplot(drawn):
    assert drawn[1] == []


def test_plots_name_the_classes(fitted):
    result, names = fitted[0].result_, ("upper", "lower")
    ax = gq.plots.plot_certainty(result, names, ax=gq.plots.panels()[1][0])
    assert [tick.get_text() for tick in ax.get_xticklabels()][::4] == ["−1\nupper", "+1\nlower"]
    ax = gq.plots.plot_embedding(result, names, ax=gq.plots.panels()[1][0])
    bar = ax.collections[0].colorbar.ax
    assert [tick.get_text() for tick in bar.get_yticklabels()][::4] == ["−1: upper", "+1: lower"]
    node = np.array([int(gq.results.most_certain(result, 1)[0])])
    images = np.zeros((150, 4, 4))
    (ax,) = gq.plots.plot_images(result, images, node, class_names=names, axes=gq.plots.panels()[1])
    expected = names[int(gq.results.labels(result)[node[0]] > 0)]
    assert ax.get_title().splitlines()[0] == expected


def test_two_moons_are_two_half_circles():
    moons = gq.datasets.two_moons(1001, n_features=5, noise_std=0.0, rng=2)
    upper = moons.features[moons.classes == 0]
    lower = moons.features[moons.classes == 1]
    assert (len(upper), len(lower)) == (501, 500)
    np.testing.assert_allclose(np.linalg.norm(upper[:, :2], axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(lower[:, :2] - [1, 0.5], axis=1), 1)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5
    assert not moons.features[:, 2:].any()
    noisy = gq.datasets.two_moons(1001, n_features=5, noise_std=0.1, rng=2)
    assert noisy.features[:, 2:].std() == pytest.approx(0.1, rel=0.05)


def test_digits_are_built_in():
    digits = gq.datasets.load_digits((4, 9))
    assert digits.features.shape == (361, 64)
    with pytest.raises(InvalidInput, match="digits from 0 to 9"):
        gq.datasets.load_digits((11,))


def test_voting(data_folder):
    voting = gq.datasets.load_voting(data_folder)
    assert voting.features.shape == (435, 16)
    assert (voting.classes == "democrat").sum() == 267
    assert (voting.features == 0).sum() == 392


def test_mnist(data_folder):
    pair = gq.datasets.load_mnist((4, 9), 100, folder=data_folder)
    assert pair.features.shape == (200, 784)
    assert pair.features.max() == 1.0
    assert np.unique(pair.classes).tolist() == [4, 9]
    small = gq.datasets.load_mnist((4, 9), 100, n_components=10, folder=data_folder)
    assert small.features.shape == (200, 10)


def test_files_are_checked(tmp_path, monkeypatch):
    content = b"data"
    file = RemoteFile("a/b.txt", hashlib.sha256(content).hexdigest(), "http://localhost:1/b.txt")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_bytes(content)
    assert locate(file, tmp_path).read_bytes() == content
    monkeypatch.setenv("GRAPHUQ_DATA", str(tmp_path))
    assert locate(file, None).read_bytes() == content
    (tmp_path / "a" / "b.txt").write_bytes(b"dat")
    with pytest.raises(StorageError, match="wrong checksum"):
        locate(file, tmp_path)
    (tmp_path / "a" / "b.txt").unlink()
    monkeypatch.setenv("GRAPHUQ_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(StorageError, match="could not be downloaded"):
        locate(file, tmp_path)


@pytest.mark.slow
def test_report_lists_wrong_labels(fitted, tmp_path):
    """One of 60 labels is flipped; its class by the report is the true one."""
    _, moons = fitted
    names = np.array(["low", "high"])
    y = np.where(np.arange(150) < 60, names[moons.classes], "")
    classifier = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
    gq.write_report(classifier.fit(moons.features, y).result_, tmp_path / "right.html")
    right = (tmp_path / "right.html").read_text()
    assert "Labels to check" not in right
    assert "No given label is improbable, given all others." in right
    y[4] = names[1 - moons.classes[4]]
    ids = [f"row {i}" for i in range(150)]
    result = classifier.fit(moons.features, y).result_
    gq.write_report(result, tmp_path / "wrong.html", ids=ids, class_names=["A", "B"])
    listed = (tmp_path / "wrong.html").read_text().split("Labels to check")[1].split("</table>")[0]
    assert listed.count(">row ") == 1
    assert ">row 4<" in listed
    assert listed.index(f"<b>{'AB'[list(classifier.classes_).index(y[4])]}</b> 0.0") > 0
