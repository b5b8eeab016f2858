"""The numbers of the nodes in the page, the verdict beside known classes, and hostile names."""

import base64
import dataclasses
import io
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.report import data, thumbnails
from graphuq.report.calibration import check_calibration
from graphuq.spectrum.layout import node_layout
from graphuq.utils.html import bundled

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'\"><svg onload=alert(1)>",
    "{{ 7 * 7 }}",
    "a\u2028b\u2029c\x00d\ud800e",
    '=HYPERLINK(1),"x"',
    "$\\frac{$ 数字",
]


@pytest.fixture(scope="module")
def moons():
    made = gq.datasets.two_moons(300, n_features=2, noise_std=0.1)
    y = np.where(np.arange(300) < 12, made.classes, -1)
    method = "expectation-propagation"
    return gq.GraphClassifier(n_neighbors=8, inference=method).fit(made.features, y).result_, made


@pytest.fixture(scope="module")
def digits():
    made = gq.datasets.load_digits((0, 1, 2, 3))
    y = np.where(np.arange(len(made.classes)) < 40, made.classes, -1)
    classifier = gq.GraphClassifier(inference="expectation-propagation")
    return classifier.fit(made.features, y).result_, made


def payload_of(page):
    """The JSON in a page, as a browser reads it."""
    found = re.search(r'<script type="application/json" id="nodes">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def column(payload, name):
    packed = payload["columns"][name]
    return np.frombuffer(base64.b64decode(packed["data"]), packed["type"].lower())


def test_payload_holds_the_numbers_of_the_result(digits, tmp_path):
    result, made = digits
    names, truth = ["zero", "one", "two", "three"], made.classes.astype(float)
    truth[50] = np.nan
    gq.write_report(result, tmp_path / "r.html", class_names=names, truth=truth)
    payload = payload_of((tmp_path / "r.html").read_text())
    n = len(result.has_evidence)
    assert payload["classes"] == names
    assert payload["n_nodes"] == payload["n_shown"] == n
    assert payload["ids"] is None
    np.testing.assert_array_equal(column(payload, "node"), np.arange(n))
    top = column(payload, "top").reshape(n, 3)
    np.testing.assert_array_equal(top[:, 0], gq.results.labels(result))
    probability = (column(payload, "probability").reshape(n, 3) + 0.5) / data.N_CELLS
    expected = np.sort(result.probabilities, axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(probability, expected, atol=1e-5)
    given, known = column(payload, "given"), column(payload, "truth")
    np.testing.assert_array_equal(np.flatnonzero(given != 255), np.arange(40))
    np.testing.assert_array_equal(given[:40], made.classes[:40])
    assert known[50] == 255
    np.testing.assert_array_equal(np.delete(known, 50), np.delete(made.classes, 50))
    np.testing.assert_array_equal(payload["next"], gq.acquisition.query(result, 20))
    assert set(payload["next"]) != set(gq.most_uncertain(result, 20))
    place = np.stack([column(payload, "x"), column(payload, "y")], axis=1) / 65535
    spectrum = result.posterior.spectrum
    expected = node_layout(spectrum, np.arange(n), first=result.posterior.labelled)
    np.testing.assert_allclose(place, expected, atol=1e-5)


@pytest.mark.parametrize("digits", [2, 3, 4])
def test_a_cell_is_rounded_as_its_probability(digits):
    rng = np.random.default_rng(0)
    borders = (np.arange(10**digits) + 0.5) / 10**digits
    p = np.concatenate([[0.0, 1.0, 1 / 3], rng.random(20_000), borders - 1e-9, borders + 1e-9])
    shown = data.middle_of_cell(p)
    assert np.abs(shown - p).max() <= 0.5 / data.N_CELLS + 1e-12
    assert [f"{x:.{digits}f}" for x in shown] == [f"{x:.{digits}f}" for x in p]


def test_two_classes_and_ties(moons):
    """A tie has the second class, as in `graphuq.results.labels`."""
    result, _ = moons
    probabilities = result.probabilities.copy()
    probabilities[100] = 0.5
    tied = dataclasses.replace(result, probabilities=probabilities)
    payload = data.node_data(tied, ["a", "b"], np.arange(300), next_nodes=np.array([100, 7]))
    top = column(payload, "top").reshape(300, 2)
    np.testing.assert_array_equal(top[:, 0], (gq.results.labels(tied) > 0).astype(int))
    assert top[100].tolist() == [1, 0]
    assert payload["next"] == [100, 7]


def test_few_nodes_are_shown_and_the_important_ones_are_among_them(moons, monkeypatch):
    result, _ = moons
    monkeypatch.setattr(data, "N_UNCERTAIN", 30)
    ids, next_nodes = [f"row {i}" for i in range(300)], gq.most_uncertain(result, 20)
    payload = data.node_data(result, ["a", "b"], ids, next_nodes=next_nodes, max_shown=60)
    nodes = column(payload, "node")
    assert payload["n_shown"] == len(nodes) == len(set(nodes)) == 60
    assert set(gq.most_uncertain(result, 30)) | set(range(12)) <= set(nodes)
    assert [payload["ids"][i] for i in payload["next"]] == [f"row {i}" for i in next_nodes]
    probability = (column(payload, "probability").reshape(60, 2) + 0.5) / data.N_CELLS
    np.testing.assert_allclose(
        probability[:, 0], result.probabilities[nodes].max(axis=1), atol=1e-5
    )


def test_long_names_do_not_make_a_large_page(moons, monkeypatch):
    result, _ = moons
    monkeypatch.setattr(data, "MAX_BYTES", 10_000)
    ids = ["\u00e9" * 5000 + str(i) for i in range(300)]
    payload = data.node_data(result, ["a", "b"], ids, next_nodes=gq.most_uncertain(result, 20))
    assert 15 <= payload["n_shown"] < 300
    assert len(json.dumps(payload)) < 12_000


def test_thumbnails_are_the_images_in_order():
    images = np.random.default_rng(0).uniform(size=(12, 30, 50))
    images[3] = 0.0
    images[7] = 1.0
    order = np.array([7, 3, 0])
    sheet = thumbnails.thumbnails(images, order)
    assert (sheet["height"], sheet["width"], sheet["count"]) == (15, 25, 3)
    with Image.open(io.BytesIO(base64.b64decode(sheet["png"]))) as picture:
        pixels = np.asarray(picture.convert("L"))
    assert pixels.shape == (30, 50)
    assert (pixels[:15, :25] == 0).all()  # large numbers are dark
    assert (pixels[:15, 25:] == 255).all()
    means = images[0].reshape(15, 2, 25, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(1 - pixels[15:, :25] / 255, means, atol=0.04)


@pytest.mark.parametrize(("side", "step"), [(8, 1), (224, 2), (1, 1)])
def test_the_picture_of_a_node_has_its_own_range_of_greys(side, step):
    image = np.random.default_rng(0).uniform(size=(side, side)) * 1e-3 - 5.0
    with Image.open(io.BytesIO(base64.b64decode(thumbnails.picture(image)))) as picture:
        pixels = np.asarray(picture.convert("L"))
    length = side // step
    means = image.reshape(length, step, length, step).mean(axis=(1, 3))
    low, high = image.min(), image.max()
    expected = (means - low) / ((high - low) or 1.0)
    np.testing.assert_allclose(1 - pixels / 255, expected, atol=0.04)


def test_thumbnails_fit_in_their_bytes(monkeypatch):
    monkeypatch.setattr(thumbnails, "MAX_BYTES", 5000)
    images = np.random.default_rng(0).uniform(size=(100, 28, 28))
    sheet = thumbnails.thumbnails(images, np.arange(100))
    assert 3 <= sheet["count"] < 20
    assert len(base64.b64decode(sheet["png"])) <= 5000


@pytest.mark.parametrize(
    ("shift", "n", "level"),
    [(0.0, 4000, "green"), (-0.1, 4000, "amber"), (-0.25, 4000, "red"), (-0.1, 20, "green")],
)
def test_verdict_sees_the_calibration(shift, n, level):
    """Probabilities 0.9 whose labels are right in a share of 0.9 + shift."""
    right = np.arange(n) < round((0.9 + shift) * n)
    check = check_calibration(np.full(n, 0.8), np.where(right, 1.0, -1.0))
    assert check.level == level
    assert check.value == pytest.approx(abs(shift), abs=1e-9)
    assert ("too sure" in check.sentence) == (level != "green")


@pytest.mark.slow
def test_report_is_not_green_beside_a_large_calibration_error(moons, tmp_path):
    result, made = moons
    truth = made.signs(1)
    gq.write_report(result, tmp_path / "right.html", truth=truth)
    right = (tmp_path / "right.html").read_text()
    truth[np.arange(300) % 3 == 1] *= -1
    gq.write_report(result, tmp_path / "wrong.html", truth=truth)
    wrong = (tmp_path / "wrong.html").read_text()
    assert 'class="verdict red"' in wrong
    assert 'class="verdict red"' not in right


def test_hostile_names_stay_text(moons, tmp_path):
    result, _ = moons
    ids = [HOSTILE[i % len(HOSTILE)] + str(i) for i in range(300)]
    names = [HOSTILE[7], HOSTILE[5]]
    gq.write_report(result, tmp_path / "r.html", title=HOSTILE[2], class_names=names, ids=ids)
    page = (tmp_path / "r.html").read_text()
    assert page.count("<script") == 2  # the data and the script
    assert page.count("</script>") == 2
    assert "<img src=x" not in page
    assert "<svg" not in page
    assert "49" not in re.findall(r"<td>([^<]*)</td>", page)
    payload = payload_of(page)
    assert payload["ids"] == ids
    assert payload["classes"] == names


def test_scripts_fit_into_a_page():
    for name in ("report.js", "numbers.js", "map.js"):
        text = bundled(name)
        assert not re.search(r"<!--|</script|^import |^export ", text, re.IGNORECASE | re.MULTILINE)
        assert "innerHTML" not in text


def test_policy_names_the_hash_of_the_script(moons, tmp_path):
    import hashlib

    gq.write_report(moons[0], tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    for kind, text in {"script-src": script, "style-src": style}.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<[^>]+ (style|on\w+)=", page.replace(script, ""))  # would be blocked


def test_entries_are_one_for_each_node(moons, tmp_path):
    with pytest.raises(InvalidInput, match="ids: 2 entries for 300 rows"):
        gq.write_report(moons[0], tmp_path / "r.html", ids=["a", "b"])
    with pytest.raises(InvalidInput, match="images: 5 entries"):
        gq.write_report(moons[0], tmp_path / "r.html", images=np.zeros((5, 8, 8)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("inference", ["laplace", "map", "pcn"])
def test_no_cell_is_empty(inference, tmp_path):
    made = gq.datasets.two_moons(120, n_features=2, noise_std=0.1)
    y = np.where(np.arange(120) < 10, made.classes, -1)
    if inference == "pcn":
        inference = gq.inference.MCMC("pcn", n_samples=50, n_chains=2, n_warmup=50, stop=None)
    classifier = gq.GraphClassifier(n_neighbors=8, inference=inference, model="largest-evidence")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gq.errors.NotConvergedWarning)
        result = classifier.fit(made.features, y).result_
    gq.write_report(result, tmp_path / "r.html", truth=made.signs(1))
    page = (tmp_path / "r.html").read_text()
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page, re.DOTALL)
    assert len(cells) > 100
    assert all(re.sub(r"<[^>]*>", "", cell).strip() for cell in cells)
    assert "None" not in page.split("<pre>")[0]
    assert not re.search(r">\s*nan\s*<", page)


def test_a_result_without_eigenpairs_has_a_map(tmp_path):
    """Two clusters lie apart, and labels are proposed."""
    made = gq.datasets.two_moons(120, n_features=2, noise_std=0.05)
    labelled, signs = np.arange(0, 120, 8), made.signs(1)
    posterior = gq.Posterior(
        gq.Laplacian(gq.graphs.knn_graph(made.features, n_neighbors=8)),
        gq.priors.RegularizedLaplacian(),
        gq.likelihoods.Probit(),
        labelled,
        signs[labelled],
    )
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    gq.write_report(result, tmp_path / "r.html")
    payload = payload_of((tmp_path / "r.html").read_text())
    place = np.stack([column(payload, "x"), column(payload, "y")], axis=1) / 65535
    apart = np.linalg.norm(place[:, None] - place, axis=2) + np.eye(120)
    assert (signs[apart.argmin(axis=1)] == signs).mean() > 0.95
    assert len(payload["next"]) == 20


LARGE = """
import os, sys, time
import numpy as np, graphuq as gq
n = 1_000_000
graph = gq.graphs.grid_graph((1000, 1000))
rng = np.random.default_rng(0)
spectrum = gq.laplacian_spectrum(graph, laplacian="unnormalized", n_eigenpairs=30)
labelled = rng.choice(n, 200, replace=False)
posterior = gq.Posterior(spectrum, gq.priors.Matern(), gq.likelihoods.Probit(), labelled,
                         np.where(labelled % 1000 < 500, -1, 1))
result = gq.infer(posterior, gq.inference.ExpectationPropagation())
ids = np.char.add("a longer name of node ", np.arange(n).astype(str))
images = np.broadcast_to(rng.uniform(size=(1, 28, 28)), (n, 28, 28))
start = time.perf_counter()
truth = np.where(np.arange(n) % 1000 < 500, -1.0, 1.0)
gq.write_report(result, sys.argv[1], ids=ids, images=images, truth=truth)
print(os.path.getsize(sys.argv[1]), time.perf_counter() - start)
"""


@pytest.mark.slow
def test_a_million_nodes_make_a_small_page(tmp_path):
    page = tmp_path / "large.html"
    command = [sys.executable, "-W", "ignore", "-c", LARGE, str(page)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(printed[-2]) < 2_000_000
    assert float(printed[-1]) < 120  # measured 30 s on a busy machine
    payload = payload_of(page.read_text())
    assert payload["n_nodes"] == 1_000_000
    assert 10_000 < payload["n_shown"] <= 50_000
    assert f"{payload['n_shown']:,} of 1,000,000 nodes are shown" in page.read_text()
