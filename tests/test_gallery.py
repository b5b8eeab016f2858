"""Each script of the gallery runs, shows what its text says, and ends in a readable picture."""

import re
import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import graphuq as gq

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.py"))
SLOW = {
    "labels/next_labels.py",
    "labels/wrong_labels.py",
    "models/learnt_hyperparameters.py",
    "trust/without_leaking.py",
}
NEEDS = {"data/single_cells.py": "anndata", "data/network.py": "networkx",
         "data/papers.py": "networkx", "data/penguins.py": "palmerpenguins"}  # fmt: skip


def closest_to_truth_is(names):
    """Whether annotators are ranked as their labels were drawn, and graphuq beats the majority."""
    accuracy = names["people"].set_index("annotator")["accuracy"]
    shares = names["shares"]
    return (
        accuracy["ann"] > accuracy["bob"] > accuracy["cyd"]
        and shares["labelled rows, by graphuq"] > shares["labelled rows, by majority"]
        and shares["new rows"] > 0.9
    )


def certificate_is_honest(names):
    """Whether the real move is below the bound, and within a factor of two of the estimate."""
    real, estimate, bound = (np.array(names[name]) for name in ("real", "estimate", "bound"))
    return (real < 1.1 * bound).all() and (real < 2 * estimate).all()


def honest_choices_are_good(names):
    """Whether held-out labels and evidence choose nearly as well as the truth would."""
    unseen = dict(zip(names["choices"], names["unseen"], strict=True))
    chosen = {name: unseen[count] for name, count in names["chosen"].items()}
    return min(chosen["held out"], chosen["evidence"]) > max(unseen.values()) - 0.03


def every_likelihood_is_shown(names):
    """Whether all likelihoods are there, probabilities sum to 1, and hard labels contradict."""
    shown = {name.split("(")[0] for name in names["LIKELIHOODS"]}
    concrete = set(gq.likelihoods.__all__) - {"Likelihood", "StepLikelihood"}
    binary = [sum(names["probability"][name]) for name in list(names["LIKELIHOODS"])[:6]]
    empty = set(names["LIKELIHOODS"]) - set(names["posterior"])
    return shown == concrete and np.allclose(binary, 1) and empty == {"NoiseFree()"}


CLAIMS = {
    "data/grades.py": lambda names: (
        names["scores"]["with the order"][0] < names["scores"]["without"][0] - 0.05
        and names["scores"]["with the order"][1] < names["scores"]["without"][1]
        and names["correlation"] > 0.5
    ),
    "data/tags.py": lambda names: (
        names["right"].mean() > 0.85 and abs(names["right"].mean() - names["expected"]) < 0.08
    ),
    "data/counts.py": lambda names: (
        names["error"] < 0.5 * names["error_average"]
        and 0.85 < names["inside"] < 0.98
        and 0.1 < names["regressor"].noise_std_ < 0.5
    ),
    "data/network.py": lambda names: names["accuracy"] > 0.9,
    "data/numbers_as_labels.py": lambda names: (
        names["error"] < names["error_process"] and 0.8 < names["inside"] < 0.97
    ),
    "data/papers.py": lambda names: (
        names["right"]["citations and words"].mean() > names["right"]["words"].mean() + 0.1
        and names["right"]["words"].mean() > names["right"]["citations"].mean()
    ),
    "data/penguins.py": lambda names: (
        min(right for _, right, _ in names["fitted"].values()) > 0.95
        and abs(names["fitted"]["with sex"][2] - names["fitted"]["without sex"][2]) < 0.02
        and names["across"] < 0.01
    ),
    "data/scene.py": lambda names: names["right"].mean() > 0.9,
    "data/single_cells.py": lambda names: names["accuracy"] > 0.85,
    "data/tissue.py": lambda names: (
        names["right"]["gq"] > names["right"]["blind"] + 0.1
        and np.mean(
            (names["first"]["lower"] - 0.02 < names["truth"])
            & (names["truth"] < names["first"]["upper"] + 0.02)
        )
        > 0.7
    ),
    "data/texts.py": lambda names: min(names["right"].values()) > 0.85,
    "first_steps/how_it_works.py": lambda names: (
        names["accuracy"] > 0.85 and names["accuracy_of_sure"] > 0.95 and names["sure"].sum() > 15
    ),
    "first_steps/few_labels.py": lambda names: (
        names["accuracy"] > 0.9 and "graphuq-answer" in names["classifier"].result_._repr_html_()
    ),
    "first_steps/scaling_matters.py": lambda names: (
        names["accuracy"]["default, columns scaled"] > names["accuracy"]["default"]
        and names["accuracy"]["default"] > names["accuracy"]["one graph"] + 0.1
        and "scales of features differ" in str(names["caught"][0].message)
    ),
    "labels/crowd.py": lambda names: (
        names["shares"]["people and pictures"] > names["shares"]["majority of three"] + 0.1
        and names["shares"]["people and pictures"] > names["shares"]["people alone"]
        and names["held"].mean() > 0.7
    ),
    "labels/next_labels.py": lambda names: names["wrong"][-1] < names["wrong"][0],
    "labels/people_and_tables.py": closest_to_truth_is,
    "labels/unequal_classes.py": lambda names: (
        names["numbers"]["default"][0] > 0.8
        and names["numbers"]["default"][1] > 0.5 > 0.2 > names["numbers"]["no constant"][1]
    ),
    "labels/wrong_labels.py": lambda names: names["found"] >= 7,
    "models/learnt_hyperparameters.py": lambda names: names["table"]["r_hat"].max() < 1.02,
    "models/likelihoods.py": every_likelihood_is_shown,
    "models/likelihood_of_your_own.py": lambda names: (
        names["accuracy"]["Cauchit"] > names["accuracy"]["Probit"] + 0.05
    ),
    "models/model_trained_elsewhere.py": lambda names: (
        names["weights"]["random classes"] < 0.01
        and names["right"]["average"] > names["right"]["network"] + 0.05
        and names["right"]["average"] > names["right"]["graphuq alone"] - 0.01
    ),
    "models/many_rows.py": lambda names: min(names["accuracies"]) > 0.9,
    "trust/truncation.py": certificate_is_honest,
    "trust/verdict.py": lambda names: (
        names["fitted"]["labels as they are"].result_.trust.level == "green"
        and names["fitted"]["labels shuffled"].result_.trust.level != "green"
    ),
    "trust/without_leaking.py": honest_choices_are_good,
}


@pytest.fixture
def pyplot():
    """Pyplot without a window, whose figures are closed afterwards."""
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def unreadable(figure):
    """Return what a reader could not tell: panels without content, or axes without a name."""
    faults = []
    for ax in figure.axes:
        if not ax.axison or ax.get_label() == "<colorbar>":
            continue
        if not (ax.collections or ax.lines or ax.patches or ax.images):
            faults.append("empty panel")
        shared = ax.get_shared_x_axes().get_siblings(ax)
        if not ax.images and not any(other.get_xlabel() for other in shared):
            faults.append(f"no name of the x axis: {ax.get_title()}")
    return faults


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "script",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SCRIPTS],
)
def test_a_script_shows_what_it_says(script, pyplot, capsys):
    if script in NEEDS:
        pytest.importorskip(NEEDS[script], reason=f"pip install {NEEDS[script]}, to run {script}")
    names = runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert CLAIMS[script](names), capsys.readouterr().out
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) > 0
    assert [unreadable(figure) for figure in figures] == [[]] * len(figures)


def test_every_script_has_a_claim_and_a_form_that_the_gallery_reads():
    assert set(CLAIMS) == set(SCRIPTS)
    assert len(SCRIPTS) >= 12
    for script in SCRIPTS:
        text = (EXAMPLES / script).read_text(encoding="utf-8")
        title, line = re.match(r'"""\n(.+)\n(=+)\n\n', text).groups()
        assert len(line) == len(title), script
        assert "# %%" in text, script
        assert text.endswith("plt.show()\n"), script


def test_every_section_of_the_gallery_is_in_its_order():
    conf = (EXAMPLES.parent / "docs" / "conf.py").read_text(encoding="utf-8")
    sections = re.search(r"^SECTIONS = \[(.*)\]$", conf, re.M)[1].replace('"', "").split(", ")
    folders = {path.parent.name for path in EXAMPLES.glob("*/GALLERY_HEADER.rst")}
    assert set(sections) == folders == {script.split("/")[0] for script in SCRIPTS}


def test_a_picture_without_names_is_found(pyplot):
    figure, (left, right) = pyplot.subplots(1, 2)
    left.plot([0, 1])
    assert unreadable(figure) == [
        "no name of the x axis: ",
        "empty panel",
        "no name of the x axis: ",
    ]
    left.set_xlabel("x")
    right.scatter([0], [0])
    right.set_xlabel("y")
    assert unreadable(figure) == []
