"""Tags in a real browser: keys, clicks, the keyboard alone, narrow and dark; skipped without."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.labelling.tag_text import names_in, text_of
from labelling.browsing import ANOTHER, SHOWN, keys, name, press, saved, start

pytest.importorskip(
    "playwright.sync_api", reason="pip install playwright, to test pages in a browser"
)
pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")

TAGS = ["comedy", "drama", "science fiction"]
OFFERED = ["documentary", *TAGS]
CHOSEN = "all => all.filter(b => b.getAttribute('aria-pressed') === 'true')" \
    ".map(b => b.querySelector('.name').textContent)"  # fmt: skip
X = np.random.default_rng(0).normal(size=(120, 3))
TRUTH = [{tag for tag, x in zip(TAGS, row, strict=True) if x > 0.3} for row in X]


@pytest.fixture
def page(tmp_path):
    """120 films, of which 20 have tags."""
    y = [tags if row < 20 else None for row, tags in enumerate(TRUTH)]
    with gq.label(X, y=y, tags=True, classes=["documentary"], labels=tmp_path / "labels.jsonl",
                  open_browser=False, user="ada", title="Films") as opened:  # fmt: skip
        yield opened


def chosen(tab):
    return set(tab.eval_on_selector_all("#classes button", CHOSEN))


def choose(tab, tags):
    """Choose just these tags by their keys."""
    of = keys(tab)
    for tag in chosen(tab) ^ tags:
        tab.keyboard.press(of[tag])
    assert chosen(tab) == tags


def shown_tags(page, row):
    """Return the tags that a card has with more than one half."""
    found = page.session.card(row)["classes"]
    return {one["name"] for one in found if one["probability"] > 0.5}


@pytest.mark.parametrize(
    ("width", "scheme"), [(1300, "light"), pytest.param(400, "dark", marks=pytest.mark.slow)]
)
def test_films_are_tagged_by_keys(page, tab, width, scheme):
    """Several tags, none, a new one, a skip and an undo; the file has what was confirmed."""
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    start(tab, page)
    assert keys(tab) == dict(zip(OFFERED, "1234", strict=True))
    tab.wait_for_selector("#classes .bar b", timeout=90_000)  # the first posterior
    assert chosen(tab) == shown_tags(page, int(name(tab)))
    given = {}
    for tags in (set(TAGS[:2]), set(), None):
        row = int(name(tab))
        tags = TRUTH[row] if tags is None else tags
        choose(tab, tags)
        words = ", ".join(sorted(tags)) or "none of them"
        assert tab.text_content("#accept b") == words
        press(tab, "Enter")
        assert tab.text_content("#said") == f"{row}: {words}"
        given[row] = text_of(tags)
    assert saved(page, 3) == given
    tab.keyboard.press("n")
    tab.keyboard.type("western")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#classes button:nth-child(5)")
    choose(tab, {"western", "drama"})
    row = int(name(tab))
    press(tab, "Enter")
    given[row] = "drama;western"
    assert saved(page, 4) == given
    skipped = name(tab)
    press(tab, "s")
    tab.keyboard.press("g")
    assert "one by one" in tab.text_content("#said")
    tab.keyboard.press("u")
    tab.wait_for_function(f"() => document.getElementById('item-name').textContent === '{skipped}'")
    tab.keyboard.press("u")
    tab.wait_for_function(f"() => document.getElementById('item-name').textContent === '{row}'")
    del given[row]
    assert saved(page, 6) == given
    for hidden in ("alike", "audit-draw", "map-label", "hits-label", "people-right"):
        assert tab.is_hidden(f"#{hidden}")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    tab.wait_for_function("() => document.getElementById('errors').textContent.includes('By tag')")
    assert "no audit of tags" in tab.text_content("#advice")
    tab.goto("about:blank")


def test_a_choice_outlives_a_new_posterior(page, tab):
    """Somebody else's labels renew the bars; what this person chose stays."""
    start(tab, page)
    row = int(name(tab))
    tab.click("#classes button:nth-child(1)")
    mine = chosen(tab)
    assert "documentary" in mine
    version = page.session.card(row)["version"]
    for other in (100, 101, 102):
        page.session.label("bob", [other], sorted(TRUTH[other]))
    page.session.wait_until_current()
    assert page.session.card(row)["version"] > version
    tab.wait_for_timeout(3500)  # after which the bars of the item are those of the new posterior
    assert (int(name(tab)), chosen(tab)) == (row, mine)
    tab.click("#accept")
    tab.wait_for_function(ANOTHER, arg=str(row))
    assert saved(page, 4)[row] == text_of(mine)


def test_by_tab_key_and_space(page, tab):
    """Without keys of tags: a button that has the focus is pressed by space and by Enter."""
    start(tab, page)
    before = chosen(tab)
    row = name(tab)
    for key in ("Space", "Enter", "Space"):
        tab.focus("#classes button:nth-child(2)")
        tab.keyboard.press(key)
        assert name(tab) == row
    assert chosen(tab) == before ^ {"comedy"}
    tab.focus("#accept")
    tab.keyboard.press("Enter")
    tab.wait_for_function(ANOTHER, arg=row)
    assert set(names_in(saved(page, 1)[int(row)])) == before ^ {"comedy"}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_tags_are_accessible(page, tab, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    tab.emulate_media(color_scheme=scheme)
    start(tab, page)
    choose(tab, {"comedy", "drama"})
    tab.wait_for_function(SHOWN)
    found = axe.Axe().run(tab).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_two_people_see_what_the_other_said(page, tab):
    """A disagreement is shown, and the tags that are confirmed then decide."""
    session = page.session
    start(tab, page)
    session.label("bob", [90], ["comedy"])
    session.label("eve", [90], [])
    tab.wait_for_selector("#decide:not([hidden])")
    assert "bob: comedy · eve: none of them" in tab.text_content("#suspects")
    tab.click("#decide")
    tab.wait_for_function("() => document.getElementById('item-name').textContent === '90'")
    assert "What you confirm decides" in tab.text_content("#disputed")
    choose(tab, {"comedy", "drama"})
    press(tab, "Enter")
    assert saved(page, 3)[90] == "comedy;drama"
    assert session.store.records[-1].kind == "decision"
    assert session.store.disagreements() == []
