"""Remedies for Python, in the words of the command line.

The parts below the commands say what to do in Python. `at_command_line` says the same by options:
first what has words of its own there (`REMEDIES`), then each argument that is an option of the
command, such as ``weights='self-tuning'`` or ``n_eigenpairs``.
"""

import re
from collections.abc import Mapping
from shlex import quote
from typing import Any

REMEDIES = (
    (r"(use|as by) make_pipeline\(StandardScaler.*$", "use --scaling standard"),
    (r"TableEncoder\(.*\), or (--.*) at the command line", r"\1"),
    (
        r"pass missing_label=('[^']*'|-?\d+)(, or give None in its place)?",
        r"add --missing-label \1",
    ),
    (
        r"give it graphuq\.WithUnlabelled\(.*\), and labelled rows alone",
        "add --missing-label 0, or leave these cells empty",
    ),
    (
        r"to use them rename them, or give from_adjacency\(graph, weight=('.*')\); weight=None is "
        "silent",
        r"to use them rename \1 to 'weight' in the file",
    ),
    (r"GraphClassifier\(metric='precomputed'\), or gq\.graphs\.from_distances",
     "--metric precomputed"),
    (r"gq\.MultilabelClassifier", "--tag-columns"),
    (r" by gq\.suspect_labels\(result\)", ""),
    (r",? or by add_labels\(rows, classes\)", ""),
    (r", or gq\.acquisition\.query\(result, 20\)", ""),
    (r"inference=MCMC\(n_chains=8\)", "--n-chains 8"),
    (r"inference=gq\.inference\.MCMC\(n_samples=1000\)", "--n-samples 1000"),
    (r"raise thin or n_samples", "raise --thin or --n-samples"),
    (r"ExpectationPropagation\(\)", "--inference expectation-propagation"),
    (r"use out_of_sample='nearest'", "classify with --out-of-sample nearest"),
    (r"set ordered=True, or a list of classes", "add --ordered, or --class-order LOW,HIGH"),
    (r"model='auto' for other numbers", "leave --counts out"),
    (r", or (a Graph|an object of that kind)$", ""),
)  # fmt: skip
"""Remedies for Python (regular expressions), and what replaces them."""

GIVEN = re.compile(r"(?<![\w.-])(\w+)=('[^']*'|[A-Z]\w+\([^()]*\)|-?\d[\d.]*|True|False)")
NAMED = re.compile(r"(?<![\w.'\"-])([a-z]+(?:_[a-z]+)+)(?![\w.('\"=:])")


def options_of(command: Any) -> dict[str, tuple[str, bool]]:
    """Return option and whether it has no value, by the name that its argument has in Python."""
    return {
        parameter.name: (parameter.opts[-1], bool(parameter.is_flag))
        for parameter in command.params
        if parameter.param_type_name == "option"
    }


def at_command_line(text: str, options: Mapping[str, tuple[str, bool]]) -> str:
    """Return a text with the remedies of the command line.

    Parameters
    ----------
    text : str
        Of an error, a warning or a check.
    options : dict
        Those of the command, as of `options_of`.

    Examples
    --------
    >>> known = {"weights": ("--weights", False), "n_eigenpairs": ("--n-eigenpairs", False)}
    >>> at_command_line("use weights='self-tuning', or leave n_eigenpairs out", known)
    'use --weights self-tuning, or leave --n-eigenpairs out'
    """
    for remedy, option in REMEDIES:
        text = re.sub(remedy, option, text)

    def given(found: re.Match[str]) -> str:
        option, is_flag = options.get(found[1], (None, False))
        value = found[2].strip("'")
        if option is None or (is_flag and value != "True"):
            return found[0]
        words = value.lower() if value in ("True", "False") else value
        return option if is_flag else f"{option} {quote(words)}"

    def named(found: re.Match[str]) -> str:
        return options.get(found[1], (found[0], False))[0]

    return NAMED.sub(named, GIVEN.sub(given, text))
