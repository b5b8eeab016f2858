"""Saved results that were damaged or forged: refused in words, never a crash or wrong numbers."""

import hashlib
import json

import h5py
import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import GraphuqError, StorageError
from graphuq.results.storage import END, MARK
from robustness import hostile

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Return the bytes of a saved classifier."""
    path = tmp_path_factory.mktemp("saved") / "x.nc"
    classifier = gq.GraphClassifier(model="largest-evidence", inference="laplace", missing_label="")
    classifier.fit(hostile.MOONS.features, hostile.LABELS).save(path)
    return path.read_bytes()


def test_a_file_ends_with_its_checksum_and_other_readers_ignore_it(content, tmp_path):
    assert content[-END:].startswith(MARK)
    (tmp_path / "x.nc").write_bytes(content)
    with h5py.File(tmp_path / "x.nc") as file:
        assert len(file["nodes/probabilities"]) == hostile.N
    (tmp_path / "short.nc").write_bytes(content[:-END])
    with pytest.raises(StorageError, match="does not end with a checksum"):
        gq.load(tmp_path / "short.nc")


@pytest.mark.parametrize("place", np.linspace(0, 1, 25))
def test_every_flipped_bit_is_found(place, content, tmp_path):
    at = int(place * (len(content) - END - 1))
    path = tmp_path / "x.nc"
    path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
    with pytest.raises(StorageError, match="checksum is wrong"):
        gq.load(path)


def replace(name, values):
    def change(file):
        attributes = dict(file[name].attrs)
        del file[name]
        file.create_dataset(name, data=values)
        for key in attributes.keys() & {"class"}:
            file[name].attrs[key] = attributes[key]

    return change


def attribute(group, name, value):
    def change(file):
        file[group].attrs[name] = value

    return change


def without(name):
    def change(file):
        del file[name]

    return change


N = hostile.N
FORGERIES = {
    "no nodes": without("nodes"),
    "no probabilities": without("nodes/probabilities"),
    "no spectrum": without("spectrum"),
    "no eigenvectors": without("spectrum/eigenvectors"),
    "no field": without("field"),
    "no labels": without("observed_data"),
    "no labelled nodes": without("constant_data"),
    "no classifier": without("classifier"),
    "probabilities of fewer nodes": replace("nodes/probabilities", np.zeros((N - 1, 2))),
    "probabilities of more nodes": replace("nodes/probabilities", np.zeros((10 * N, 2))),
    "probabilities are NaN": replace("nodes/probabilities", np.full((N, 2), np.nan)),
    "probabilities above 1": replace("nodes/probabilities", np.full((N, 2), 7.0)),
    "probabilities are text": replace("nodes/probabilities", ["a"] * N),
    "labelled nodes out of range": replace("constant_data/labelled", np.arange(8) * 10**6),
    "labelled nodes negative": replace("constant_data/labelled", -np.arange(8) - 10**6),
    "labels unknown": replace("observed_data/label", np.full(8, 17)),
    "eigenvalues NaN": replace("spectrum/eigenvalues", np.full(N, np.nan)),
    "eigenvalues too few": replace("spectrum/eigenvalues", np.zeros(3)),
    "eigenvectors of one axis": replace("spectrum/eigenvectors", np.zeros(N)),
    "format unknown": attribute("/", "graphuq_format", 99),
    "format is text": attribute("/", "graphuq_format", "one"),
    "format is a list": attribute("/", "graphuq_format", [1, 2]),
    "prior is no JSON": attribute("/", "prior", "Matern("),
    "prior is a list": attribute("/", "prior", "[]"),
    "prior is another class": attribute("/", "prior", json.dumps({"class": "os:system"})),
    "prior opens a page": attribute("/", "prior", json.dumps({"class": "antigravity:x"})),
    "prior is a likelihood": attribute("/", "prior", '{"class": "graphuq.likelihoods:Probit"}'),
    "prior of 1e300": attribute("/", "prior", '{"class": "graphuq.priors:Matern", "tau": 1e300}'),
    "likelihood is deep": attribute("/", "likelihood", "[" * 50_000 + "]" * 50_000),
    "diagnostics are no JSON": attribute("/", "diagnostics", "{"),
    "settings are no JSON": attribute("/", "settings", "{"),
    "class is unknown": attribute("classifier", "class", "graphuq:Unknown"),
    "class of Python": attribute("classifier", "class", "subprocess:Popen"),
    "class of no classifier": attribute("classifier", "class", "graphuq.priors:Matern"),
    "classes are no JSON": attribute("classifier", "classes", "{"),
    "parameters are no JSON": attribute("classifier", "params", "{"),
    "parameters are a number": attribute("classifier", "params", "5"),
    "number of features is text": attribute("classifier", "n_features", "two"),
    "field of an unknown class": attribute("field", "class", "Exec"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_files(kind, content, tmp_path):
    """A forger computes the checksum anew."""
    path = tmp_path / "x.nc"
    path.write_bytes(content[:-END])
    with h5py.File(path, "r+") as file:
        FORGERIES[kind](file)
    forged = path.read_bytes()
    path.write_bytes(forged + MARK + hashlib.sha256(forged).hexdigest().encode())
    with pytest.raises(GraphuqError) as caught:
        gq.GraphClassifier.load(path)
    assert len(str(caught.value)) < 300
