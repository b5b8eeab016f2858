"""Options of commands are the parameters of estimators: names, defaults, words and help."""

import importlib
import inspect

import pytest
import typer

import graphuq as gq
from graphuq.cli import options as opt
from graphuq.cli.app import app, run
from graphuq.cli.generated import parameters_of, value_of_text
from graphuq.inference import MCMC

PLACES = {
    opt.CLASSIFIER: gq.GraphClassifier,
    opt.REGRESSOR: gq.GraphRegressor,
    "inference/mcmc.py:MCMC": MCMC,
    "models/evidence.py:LargestEvidence": gq.models.LargestEvidence,
    "models/regression.py:Regression": gq.models.Regression,
}
BY_FILES = {"missing_label", "class_proportions", "progress", "client"}
"""Parameters with other options: --missing-label, --class-proportions, --quiet, --workers."""


@pytest.mark.parametrize("place", PLACES)
def test_the_source_says_what_the_class_has(place):
    """Names and defaults that were read from the source are those of the imported class."""
    signature = inspect.signature(PLACES[place])
    expected = {name: found.default for name, found in signature.parameters.items()}
    read = {name: found.default for name, found in parameters_of(place).items()}
    assert read == expected


@pytest.mark.parametrize(
    ("command", "kind", "left_out"),
    [
        ("classify", gq.GraphClassifier, BY_FILES),
        ("regress", gq.GraphRegressor, {"progress"}),
    ],
)
def test_every_parameter_of_an_estimator_is_an_option(command, kind, left_out):
    group = typer.main.get_command(app)
    options = {option.name: option for option in group.get_command(None, command).params}
    for name in inspect.signature(kind).parameters:
        if name not in left_out:
            assert options[name].opts == [f"--{name.replace('_', '-')}"]
            assert options[name].help
    for name in ("n_samples", "n_chains", "n_warmup", "thin", "stop", "precision"):
        assert (name in options) == (command == "classify")


def test_help_has_the_sentence_of_the_docstring_and_its_words():
    found = parameters_of(opt.CLASSIFIER)
    assert found["n_eigenpairs"].help == (
        "Number of eigenpairs ℓ of the Laplacian. Values: a whole number, all, auto."
    )
    assert found["model"].help.endswith(
        "an expression such as 'Fixed(Matern(tau=0.3), Probit(0.1))'."
    )
    group = typer.main.get_command(app)
    for command in ("classify", "regress", "label"):
        for option in group.get_command(None, command).params:
            assert "`" not in option.help, option.name  # no Python in a terminal
            assert len(option.help.split()) > 2, option.name


def test_all_words_of_the_help_are_understood():
    """A word that the help of --inference, --prior or --likelihood offers is a part."""
    offered = {
        name: parameters_of(place)[name].help.partition("Values: ")[2].split(", ")
        for place, name in [
            (opt.CLASSIFIER, "inference"),
            ("models/evidence.py:LargestEvidence", "prior"),
            ("models/evidence.py:LargestEvidence", "likelihood"),
        ]
    }
    parts = importlib.import_module("graphuq.models.evidence")
    assert set(parts.PRIORS) <= set(offered["prior"])  # no name is left out of the help
    assert set(parts.LIKELIHOODS) <= set(offered["likelihood"])
    words = importlib.import_module("graphuq.run.words")
    for word in offered["inference"]:
        words.inference_from(word.strip("."))
    for name in ("prior", "likelihood"):
        for word in offered[name]:
            if not word.startswith("an expression") and "(" not in word and ")" not in word:
                gq.models.LargestEvidence(**{name: word})


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", 'int or "auto"', 3),
        ("auto", 'int or "auto"', "auto"),
        ("1.5", 'int or "auto"', "1.5"),
        ("²", "int", "²"),
        ("1.5", 'bool, float or "mean"', 1.5),
        ("True", 'bool, float or "mean"', True),
        ("true", "str", "true"),
        ("none", '"converged", callable or None', None),
        ("none", "int, optional", "none"),
        ("3", "str or Prior", "3"),
    ],
)
def test_values_of_texts(text, kind, value):
    found = value_of_text(text, kind)
    assert found == value
    assert type(found) is type(value)


def test_text_in_place_of_a_number_is_refused_by_name(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,label\n1,2,x\n2,1,y\n3,4,\n")
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label"]
    assert run([*command, "-o", str(tmp_path / "out"), "--thin", "few"]) == 2
    assert "thin: 'few'" in capsys.readouterr().err
