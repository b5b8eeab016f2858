"""What a person reads on the page, and does with many classes, in a real browser."""

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from labelling.browsing import ANOTHER, keys, name, press, saved, start

pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")

GROUPS = [
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "x",
    "a_name_of_one_hundred_characters_" * 2 + "that_is_as_long_as_the_page_allows",
]
WIDTHS = (1300, pytest.param(400, marks=pytest.mark.slow))


@pytest.fixture
def open_page(tmp_path):
    """Return a function that opens a page of some classes, with two labels each."""
    opened = []

    def open_(names, n=120, items=None, n_known=10, **options):
        rng = np.random.default_rng(0)
        truth = np.arange(n) % len(names)
        X = 4 * rng.normal(size=(len(names), 6))[truth] + rng.normal(size=(n, 6))
        y = np.full(n, "", dtype=object)
        known = np.flatnonzero(truth < n_known)[: 2 * min(n_known, len(names))]
        y[known] = np.array(names, dtype=object)[truth[known]]
        page = gq.label(X, items, y=y, labels=tmp_path / "labels.jsonl", open_browser=False,
                        user="ada", **options)  # fmt: skip
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()


def box(tab, selector):
    found = tab.locator(selector).first.bounding_box()
    assert found is not None, selector
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_names_of_classes_are_whole(open_page, tab, width):
    page = open_page(GROUPS)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    hidden = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1
        || e.scrollHeight > e.clientHeight + 1 || getComputedStyle(e).textOverflow === "ellipsis")
        .map(e => e.textContent)"""
    assert tab.eval_on_selector_all("#classes .name", hidden) == []
    assert set(keys(tab)) == set(GROUPS)
    guesses = set()
    for _ in range(12):  # the guess may be the class with the long name, which "Why" names too
        guesses.add(tab.text_content("#accept b"))
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        press(tab, "s")
    assert GROUPS[-1] in guesses


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_under_the_pointer(open_page, tab, width):
    """The name in "Accept" differs from item to item, and all buttons stay where they are."""
    page = open_page(GROUPS)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    tab.wait_for_function("() => document.querySelector('#classes .share').textContent !== ''")
    places, names = set(), set()
    for _ in range(12):
        names.add(tab.text_content("#accept b"))
        every = [box(tab, f"#{button}") for button in ("accept", "skip", "undo", "search")]
        places.add(tuple(round(value) for one in every for value in one.values()))
        press(tab, "s")
    assert len(names) > 2
    assert len(places) == 1


def test_a_class_is_found_by_typing(open_page, tab):
    names = [f"{kind} {k}" for k in range(20) for kind in ("oak", "elm", "ash tree")]
    page = open_page(names, n=180, n_known=3, classes=names)
    start(tab, page)
    row = int(name(tab))
    tab.keyboard.press("f")
    tab.keyboard.type("sh tree 17")
    shown = tab.locator("#classes .class:visible")
    assert shown.count() == 1
    tab.keyboard.press("Enter")
    assert saved(page, 1) == {row: "ash tree 17"}
    tab.wait_for_function(ANOTHER, arg=str(row))
    assert tab.input_value("#class-filter") == ""
    assert shown.count() == 60
    row = int(name(tab))
    tab.keyboard.press("f")
    tab.keyboard.type("no such class")
    tab.keyboard.press("Enter")  # labels nothing
    assert "No class has this" in tab.text_content("#classes-title")
    tab.keyboard.press("Escape")
    assert shown.count() == 60
    tab.keyboard.press("f")
    tab.keyboard.type("elm 3")
    first = tab.text_content("#classes .found .name")
    assert first == "elm 3"
    tab.click("#classes .class:visible")
    assert saved(page, 2)[row] == "elm 3"


@pytest.mark.slow
def test_few_classes_have_no_filter(open_page, tab):
    page = open_page(GROUPS)
    start(tab, page)
    assert tab.locator("#find").is_hidden()
    tab.keyboard.press("f")
    tab.keyboard.press("1")
    assert len(saved(page, 1)) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_small_picture_is_shown_large(open_page, tab, tmp_path, width):
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(30):
        size = (28, 14) if k % 2 else (28, 28)
        Image.fromarray(rng.integers(0, 255, size, dtype=np.uint8)).save(folder / f"{k:02d}.png")
    page = open_page(GROUPS[:2], n=30, items=sorted(folder.iterdir()))
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    for _ in range(2):
        tab.wait_for_selector("#item img.pixelated")
        assert box(tab, "#item img")["height"] > 200
        press(tab, "s")


@pytest.mark.parametrize("width", WIDTHS)
def test_all_columns_of_a_row_are_shown_with_their_names(open_page, tab, width):
    wide = pd.DataFrame({f"column {k}": np.arange(60) + 1000 * k for k in range(130)})
    texts = [f"the text {k}" for k in range(60)]
    page = open_page(GROUPS[:2], n=60, items=texts, columns=wide)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    row = int(name(tab))
    assert tab.text_content("#item .text") == f"the text {row}"
    assert tab.locator("#item dt").all_text_contents() == wide.columns.tolist()
    shown = tab.locator("#item dd").all_text_contents()
    assert shown == [str(value) for value in wide.iloc[row]]
    tab.wait_for_function("w => document.documentElement.scrollWidth === w", arg=width)
    tab.keyboard.press("/")
    tab.keyboard.type("1027")  # the second column of row 27
    tab.wait_for_selector("#hits li")
    assert tab.text_content("#hits .snippet") == "the text 27"


@pytest.mark.slow
def test_values_in_small_views_have_names(open_page, tab):
    page = open_page(GROUPS[:2], items=pd.DataFrame({"height": np.arange(120), "mass": 7}))
    start(tab, page)
    tab.keyboard.press("/")
    tab.keyboard.type("33")
    tab.wait_for_selector("#hits li")
    assert tab.text_content("#hits .snippet") == "height: 33, mass: 7"


def test_look_alikes_are_marked_only_if_they_are_sure(open_page, tab):
    page = open_page(GROUPS)
    start(tab, page)
    tab.keyboard.press("g")
    tab.wait_for_selector("#alikes li:nth-child(4)")
    chosen = tab.input_value("#alike-class")
    first, *others = tab.locator("#alikes label").all()
    assert first.locator("input").is_checked()
    probabilities = page.session.latest[0]
    at = probabilities.classes.index(chosen)
    for other in others:
        row = int(other.locator("input").input_value())
        p = probabilities.probabilities[row]
        sure = p.argmax() == at and round(float(p[at]), 4) >= 0.9
        assert other.locator("input").is_checked() == sure
    for key in ("Enter", "Escape"):
        tab.keyboard.press(key)
    assert page.session.store.records == []
    if not tab.locator("#alike-dialog[open]").count():
        tab.keyboard.press("g")
        tab.wait_for_selector("#alikes li:nth-child(4)")
    tab.click("#alike-all")
    n = len(others) + 1
    assert tab.text_content("#alike-accept") == f"Label {n} as {chosen}"
    tab.click("#alike-accept")
    assert len(saved(page, n)) == n
    known = [record.probability for record in page.session.store.records]
    assert sum(value is not None for value in known) > 1


def test_undo_after_a_skip_brings_the_item_back(open_page, tab):
    page = open_page(GROUPS)
    start(tab, page)
    given = int(name(tab))
    press(tab, "1")
    saved(page, 1)
    skipped = name(tab)
    press(tab, "s")
    tab.keyboard.press("u")
    tab.wait_for_function(
        "x => document.getElementById('item-name').textContent === x", arg=skipped
    )
    assert list(page.session.store.labels()) == [given]
    tab.keyboard.press("u")
    tab.wait_for_function(
        "x => document.getElementById('item-name').textContent === x", arg=str(given)
    )
    assert page.session.store.labels() == {}


@pytest.mark.slow
def test_two_tabs_with_one_name_show_different_items(open_page, browser):
    page = open_page(GROUPS)
    context = browser.new_context()
    shown = set()
    for k in range(3):
        tab = context.new_page()
        start(tab, page)
        for _ in range(4):
            shown.add(name(tab))
            press(tab, "s")
        assert len(shown) == 4 * (k + 1)
    context.close()


@pytest.mark.slow
def test_a_page_that_is_loaded_again_goes_on(open_page, tab):
    page = open_page(GROUPS)
    start(tab, page)
    address = tab.url
    assert page.token not in address
    press(tab, "1")
    tab.reload()
    tab.wait_for_function("() => document.getElementById('counts').textContent.startsWith('9 of')")
    assert tab.url == address


def test_the_page_says_that_its_file_was_replaced(open_page, tab, tmp_path):
    page = open_page(GROUPS)
    start(tab, page)
    old = page.session.store.path.read_bytes()
    press(tab, "1")
    saved(page, 1)
    (tmp_path / "copy").write_bytes(old)
    (tmp_path / "copy").replace(page.session.store.path)
    tab.wait_for_selector("#alert:not([hidden])")
    assert "1 labels that it lacked were written again" in tab.text_content("#alert")
    assert page.session.store.path.read_bytes().count(b'"label": ') == 1
