"""Features by models of other packages: stand-ins for two of them, and real ONNX files."""

import sys
import types

import numpy as np
import pytest
from PIL import Image

import graphuq as gq
from graphuq.cli.app import run
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling import feature_store
from graphuq.labelling.encoders import encoder_named
from graphuq.labelling.feature_store import stored_features
from graphuq.labelling.items import PictureArrays, PictureFiles, TableItems, TextItems, items_of

WORDS = ("cat", "dog")
TEXTS = [WORDS[r % 2] + WORDS[r % 2][0] * (9 + r % 5) + "cdg"[r % 3] * (r % 7) for r in range(70)]


@pytest.fixture
def sentence_transformers(monkeypatch):
    """A package whose models count letters; it keeps the sizes of the batches."""
    package, sizes = types.ModuleType("sentence_transformers"), []

    class SentenceTransformer:
        def __init__(self, name):
            assert name == "letters/v1"

        def encode(self, texts, show_progress_bar):
            assert show_progress_bar is False
            sizes.append(len(texts))
            return np.array([[t.count("c"), t.count("d"), t.count("g")] for t in texts], np.float32)

    package.SentenceTransformer = SentenceTransformer
    package.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    return sizes


@pytest.fixture
def timm(monkeypatch):
    """The packages timm and torch, with a network of the mean colour of a picture."""
    package, torch = types.ModuleType("timm"), types.ModuleType("torch")

    class Network:
        def eval(self):
            return self

        def __call__(self, batch):
            return types.SimpleNamespace(numpy=lambda: batch.mean(axis=(2, 3)))

    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    def create_model(name, pretrained, num_classes):
        assert (name, pretrained, num_classes) == ("tiny", True, 0)
        return Network()

    def transform(picture):
        return np.moveaxis(np.asarray(picture.resize((4, 4))), 2, 0) / 255

    package.create_model = create_model
    package.data = types.SimpleNamespace(
        resolve_model_data_config=lambda model: {"size": 4},
        create_transform=lambda size: transform,
    )
    torch.no_grad, torch.stack = Quiet, np.stack
    package.__spec__ = torch.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "timm", package)
    monkeypatch.setitem(sys.modules, "torch", torch)


def unit(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_texts_are_computed_once_and_go_on(sentence_transformers, tmp_path, monkeypatch):
    """Parts of an interrupted run are kept; another text, or another model, is another store."""
    monkeypatch.setattr(feature_store, "PART", 40)
    items, encoder = TextItems(TEXTS), encoder_named("sentence-transformers/letters/v1")
    told = []

    def stop(phase, done, total, _):
        told.append((phase, done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stored_features(items, encoder, tmp_path / "labels.jsonl", stop)
    assert told == [("features", 40, 70)]
    found = stored_features(items, encoder, tmp_path / "labels.jsonl")
    assert sentence_transformers == [32, 8, 30]
    expected = unit(np.array([[t.count("c"), t.count("d"), t.count("g")] for t in TEXTS], float))
    assert found == pytest.approx(expected, abs=1e-6)
    assert found.dtype == np.float32
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sentence_transformers", None)
        again = stored_features(items, encoder, tmp_path / "labels.jsonl")
    assert np.array_equal(again, found)
    assert len(sentence_transformers) == 3
    stored_features(TextItems([*TEXTS[:-1], "cow"]), encoder, tmp_path / "labels.jsonl")
    assert len(sentence_transformers) == 6
    assert len(list((tmp_path / "features").iterdir())) == 2


def test_a_text_without_letters_stays_zero(sentence_transformers, tmp_path):
    encoder = encoder_named("sentence-transformers/letters/v1")
    found = stored_features(TextItems(["", "dog"]), encoder, tmp_path / "l.jsonl")
    assert found.tolist() == [[0, 0, 0], pytest.approx([0, 2**-0.5, 2**-0.5])]


def test_the_page_compares_by_them(sentence_transformers, tmp_path):
    told = []
    options = {"embed": "sentence-transformers/letters/v1", "open_browser": False}
    path = tmp_path / "labels.jsonl"
    with gq.label(None, TEXTS, labels=path, progress=lambda *a: told.append(a), **options) as page:
        page.session.wait_until_current()
        graph = page.session.model.settings.graph.weights
        animal = np.array([text[0] for text in TEXTS])
        pairs = graph.tocoo()
        assert (animal[pairs.row] == animal[pairs.col]).mean() > 0.9
    assert told == [("features", 70, 70, 0.0)]
    with pytest.raises(InvalidInput, match="given beside X"):
        gq.label(np.eye(70), TEXTS, labels=path, **options)


def test_networks_of_pictures(timm, tmp_path):
    pixels = np.random.default_rng(0).integers(1, 255, (5, 4, 4, 3)).astype(np.uint8)
    found = stored_features(PictureArrays(pixels), encoder_named("timm/tiny"), tmp_path / "l.jsonl")
    assert found == pytest.approx(unit(pixels.mean(axis=(1, 2)) / 255), abs=1e-6)
    with pytest.raises(InvalidInput, match="use sentence-transformers/NAME"):
        stored_features(TextItems(TEXTS), encoder_named("timm/tiny"), tmp_path / "l.jsonl")


def test_the_command_takes_a_model(sentence_transformers, tmp_path, monkeypatch, capsys):
    (tmp_path / "x.csv").write_text("body\n" + "\n".join(TEXTS))

    def person(page):
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    name, out = "sentence-transformers/letters/v1", str(tmp_path / "out")
    command = ["label", str(tmp_path / "x.csv"), "--text-column", "body", "--no-browser"]
    assert run([*command, "--embed", name, "-o", out]) == 0
    assert f"Features: {name}." in capsys.readouterr().out
    assert len(list((tmp_path / "out" / "features").iterdir())) == 1
    assert run([*command, "--embed", name, "--features", "x.npy", "-o", out]) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet18", "use sentence-transformers/NAME, timm/NAME, or a file that ends in .onnx"),
        ("timm/", "use sentence-transformers/NAME"),
        ("timm/resnet18", "needs timm, which is not installed; run: pip install timm"),
        ("sentence-transformers/x", "run: pip install sentence-transformers"),
    ],
)
def test_what_is_not_there_is_told(name, message, tmp_path, monkeypatch):
    for module in ("timm", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidInput, match=message):
        gq.label(None, PictureArrays(np.ones((3, 2, 2))), labels=tmp_path / "l.jsonl", embed=name)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_fails_is_refused(sentence_transformers, tmp_path, monkeypatch):
    package = sys.modules["sentence_transformers"].SentenceTransformer
    items, encoder = TextItems(TEXTS), encoder_named("sentence-transformers/letters/v1")
    for wrong in (np.ones((3, 2)), np.full((32, 2), np.nan), np.ones(32)):
        monkeypatch.setattr(package, "encode", lambda *_, wrong=wrong, **__: wrong)
        with pytest.raises(InvalidInput, match="use another model"):
            stored_features(items, encoder, tmp_path / "l.jsonl")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    table = items_of(None, np.eye(3))
    assert isinstance(table, TableItems)
    with pytest.raises(InvalidInput, match="rows of a table"):
        stored_features(table, encoder, tmp_path / "l.jsonl")


# ---- ONNX


@pytest.fixture
def onnx():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime onnx, to test ONNX files")
    return pytest.importorskip("onnx")


def model_of(onnx, path, kind, shape, nodes):
    """Write a model with one input x and one output y."""
    make, types_ = onnx.helper, onnx.TensorProto
    graph = make.make_graph(
        [make.make_node(*node[:3], **node[3]) for node in nodes],
        "g",
        [make.make_tensor_value_info("x", getattr(types_, kind), shape)],
        [make.make_tensor_value_info("y", types_.FLOAT, None)],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return encoder_named(str(path))


@pytest.mark.parametrize("is_last", [False, True])
def test_an_onnx_file_of_pictures(onnx, tmp_path, is_last):
    """The mean colour of pictures, scaled as the input says, on either order of axes."""
    shape, axes = (["n", 4, 4, 3], [1, 2]) if is_last else (["n", 3, 4, 4], [2, 3])
    node = ("ReduceMean", ["x"], ["y"], {"axes": axes, "keepdims": 0})
    encoder = model_of(onnx, tmp_path / "m.onnx", "FLOAT", shape, [node])
    folder = tmp_path / "pictures"
    folder.mkdir()
    colours = np.array([[255, 0, 0], [10, 200, 30], [0, 0, 255]], dtype=np.uint8)
    for row, colour in enumerate(colours):
        Image.fromarray(np.full((9, 7, 3), colour)).save(folder / f"{row}.png")
    items = PictureFiles.in_folder(folder)
    found = stored_features(items, encoder, tmp_path / "l.jsonl")
    scaled = (colours / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert found == pytest.approx(unit(scaled), abs=1e-5)
    with pytest.raises(InvalidInput, match="give a model of such items"):
        stored_features(TextItems(TEXTS), encoder, tmp_path / "l.jsonl")


def test_an_onnx_file_of_bytes_with_places(onnx, tmp_path):
    """Pixels as bytes, and an output with a vector for each place, which are averaged."""
    cast = ("Cast", ["x"], ["y"], {"to": 1})
    encoder = model_of(onnx, tmp_path / "m.onnx", "UINT8", ["n", 3, "h", "w"], [cast])
    pixels = np.array([[[[200, 100, 50]]], [[[0, 10, 0]]]], dtype=np.uint8)
    found = stored_features(PictureArrays(pixels), encoder, tmp_path / "l.jsonl")
    assert found == pytest.approx(unit(pixels[:, 0, 0].astype(float)), abs=1e-5)


def test_an_onnx_file_that_is_none(onnx, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    with pytest.raises(StorageError, match="is not a readable ONNX file"):
        stored_features(TextItems(TEXTS), encoder_named(str(tmp_path / "m.onnx")), tmp_path / "l")
    with pytest.raises(StorageError, match="there is no file"):
        stored_features(TextItems(TEXTS), encoder_named(str(tmp_path / "no.onnx")), tmp_path / "l")


def test_an_onnx_file_of_tokens(onnx, tmp_path):
    """One-hot tokens, averaged without padding: shares of words."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[PAD]": 0, "[UNK]": 1, "cat": 2, "dog": 3}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    make, types_ = onnx.helper, onnx.TensorProto
    constants = [make.make_tensor("depth", types_.INT64, [1], [4]),
                 make.make_tensor("values", types_.FLOAT, [2], [0.0, 1.0])]  # fmt: skip
    graph = make.make_graph(
        [make.make_node("OneHot", ["input_ids", "depth", "values"], ["y"])],
        "g",
        [make.make_tensor_value_info("input_ids", types_.INT64, ["n", "t"])],
        [make.make_tensor_value_info("y", types_.FLOAT, None)],
        constants,
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(tmp_path / "m.onnx"))
    items = TextItems(["cat dog", "dog", "cat cat dog mouse"])
    found = stored_features(items, encoder_named(str(tmp_path / "m.onnx")), tmp_path / "l.jsonl")
    counts = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 2, 1]], dtype=float)
    assert found == pytest.approx(unit(counts), abs=1e-6)
