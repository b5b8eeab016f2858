"""What a team does on the page, by keys, in a real browser: overlap, decisions, audits, batches."""

import socket

import numpy as np
import pytest

import graphuq as gq
from graphuq.labelling.accounts import set_password
from graphuq.labelling.hosting import Hosting
from labelling.browsing import ANOTHER, SHOWN, label, name, page_wait, saved, start

pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")

WIDTHS = (1300, pytest.param(400, marks=pytest.mark.slow))
GUIDE = """# How to label

The **class** is the one that was *meant*; `!` flags <script>document.title = 1</script>.

- one
- two
1. first
"""


@pytest.fixture
def open_page(tmp_path):
    """Return a function that opens a page of two groups of points, with two labels each."""
    opened = []

    def open_(n=120, n_known=4, **options):
        rng = np.random.default_rng(0)
        truth = np.arange(n) % 2
        X = 3 * rng.normal(size=(2, 6))[truth] + rng.normal(size=(n, 6))
        y = np.full(n, "", dtype=object)
        y[:n_known] = np.array(["even", "odd"], dtype=object)[truth[:n_known]]
        texts, path = [f"point {row}" for row in range(n)], tmp_path / "labels.jsonl"
        page = gq.label(X, texts, y=y, user="ada", labels=path, open_browser=False, **options)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()


def truth_of(tab):
    return "even" if int(name(tab)) % 2 == 0 else "odd"


def wait_for_text(tab, selector, text):
    found = "([s, t]) => document.querySelector(s).textContent.includes(t)"
    tab.wait_for_function(found, arg=[selector, text])


def findings(tab):
    """Return what axe-core finds that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    response = axe.Axe().run(tab).response
    assert "color-contrast" in [rule["id"] for rule in response["passes"]]
    return [
        f"{v['id']}: {node['target']}"
        for v in response["violations"]
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]


def fits(tab, width):
    return tab.evaluate("document.documentElement.scrollWidth") == width


def become(tab, user):
    tab.fill("#user", user)
    tab.keyboard.press("Enter")
    tab.focus("#item-name")


@pytest.mark.parametrize("width", WIDTHS)
def test_two_people_and_a_decision(open_page, tab, width):
    """Ada labels, Bob reads the same without help and differs, Cyd decides; all by keys."""
    page = open_page(overlap=1.0)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    row = int(name(tab))
    assert tab.locator("#classes .bar b").count() > 0
    label(tab, truth_of(tab))
    saved(page, 1)
    become(tab, "bob")
    is_shown = f"() => document.getElementById('item-name').textContent === '{row}'"
    tab.wait_for_timeout(1_000)  # Bob's queue may take the place of Ada's item
    if int(name(tab)) != row:
        tab.keyboard.press("s")
    tab.wait_for_function(is_shown)
    assert tab.text_content("#item-blind") == "a second person's label: without help"
    assert tab.locator("#classes .share").all_text_contents() == ["", ""]
    assert tab.locator("#why li").count() == 0
    assert tab.is_disabled("#accept")
    tab.keyboard.press(" ")
    assert int(name(tab)) == row
    assert fits(tab, width)
    assert findings(tab) == []
    other = "odd" if truth_of(tab) == "even" else "even"
    label(tab, other)
    saved(page, 2)
    kinds = [r.kind for r in page.session.store.records if r.kind != "skip"]
    assert kinds == ["label", "blind"]
    become(tab, "cyd")
    tab.wait_for_selector("#decide:not([hidden])")
    assert tab.text_content("#decide") == "Decide the disagreement"
    tab.focus("#decide")
    tab.keyboard.press("Enter")
    tab.wait_for_function(f"() => document.getElementById('item-name').textContent === '{row}'")
    shown = tab.text_content("#disputed")
    assert shown.startswith(f"ada: {truth_of(tab)} · bob: {other}. ")
    assert fits(tab, width)
    assert findings(tab) == []
    label(tab, truth_of(tab))
    saved(page, 3)
    assert page.session.store.records[-1].kind == "decision"
    assert page.session.store.disagreements() == []
    tab.wait_for_selector("#decide", state="hidden")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", WIDTHS)
def test_an_audit_and_its_report(open_page, tab, width, scheme):
    page = open_page(goal=0.8)
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    wait_for_text(tab, "#advice", "14 items")
    assert tab.input_value("#audit-size") == "14"
    tab.focus("#audit-draw")
    tab.keyboard.press("Enter")
    wait_for_text(tab, "#said", "14 random items come next")
    tab.focus("#item-name")
    tab.keyboard.press("s")
    tab.wait_for_selector("#item-blind:not([hidden])")
    for _ in range(14):
        tab.wait_for_function(SHOWN)
        assert tab.text_content("#item-blind") == "audit: label it without help"
        assert tab.locator("#classes .share").all_text_contents() == ["", ""]
        (audit,) = page.session.store.standing.audits.values()
        label(tab, audit.predicted[int(name(tab))])  # the draw is random, and so would be errors
    wait_for_text(tab, "#advice", "Enough")
    found = tab.text_content("#audits li")
    assert "14 of 14 right. Accuracy 100\u00a0% (90\u00a0%: 80.7\u00a0% to 100\u00a0%)" in found
    assert [r.kind for r in page.session.store.records].count("audit") == 14
    tab.wait_for_selector("#item-blind", state="hidden")
    tab.goto(f"{tab.url}report")
    assert "14 of 14" in tab.text_content("main")
    assert fits(tab, width)
    assert findings(tab) == []


def test_what_was_asked_for_before_an_audit_is_not_shown_in_it(open_page, tab):
    """The shown item is drawn, and a queue from before the draw arrives after it."""
    page = open_page()
    start(tab, page)
    tab.evaluate(
        """() => { const real = window.fetch; window.waiting = []; window.fetch = async (...g) => {
        const answer = await real(...g);
        const waits = String(g[0]).includes("/api/queue") && !window.free;
        if (waits) await new Promise(f => window.waiting.push(f));
        return answer; }; }"""
    )
    label(tab, truth_of(tab))
    tab.wait_for_function("() => window.waiting.length === 1")  # with the new posterior
    shown = name(tab)
    tab.fill("#audit-size", "1000")
    tab.focus("#audit-draw")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#item-blind:not([hidden])")
    assert tab.text_content("#item-blind") == "audit: label it without help"
    assert name(tab) == shown
    assert tab.locator("#classes .share").all_text_contents() == ["", ""]
    tab.evaluate("window.waiting.shift()()")
    tab.wait_for_function("() => window.waiting.length === 1")
    tab.focus("#item-name")
    tab.keyboard.press("s")
    assert name(tab) == ""
    tab.evaluate("window.free = true; for (const go_on of window.waiting) go_on();")
    tab.wait_for_function(SHOWN)
    assert tab.text_content("#item-blind") == "audit: label it without help"
    assert name(tab) != shown
    audit = page.session.store.standing.open_audit
    assert int(name(tab)) == next(row for row in audit.open_rows if row != int(shown))
    tab.goto("about:blank")


def test_an_audit_ends_by_key(open_page, tab):
    page = open_page()
    start(tab, page)
    tab.fill("#audit-size", "5")
    tab.focus("#audit-draw")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#audit-end:not([hidden])")
    tab.focus("#audit-end")
    tab.keyboard.press("Enter")
    wait_for_text(tab, "#said", "The audit has ended; 5 of its items have no answer.")
    assert page.session.store.standing.open_audit is None


@pytest.mark.parametrize("width", WIDTHS)
def test_notes_and_flags_and_the_filters_that_find_them(open_page, tab, width):
    page = open_page()
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    row = int(name(tab))
    tab.keyboard.press("!")
    wait_for_text(tab, "#item-flag", "flagged by ada")
    tab.keyboard.press(".")
    tab.keyboard.type("half of it is missing")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    wait_for_text(tab, "#notes", "ada: half of it is missing")
    assert int(name(tab)) == row  # a note is no label
    assert fits(tab, width)
    tab.focus("#item-name")
    tab.keyboard.press("/")
    for state in ("flag", "note"):
        tab.select_option("#find-state", state)
        wait_for_text(tab, "#hits-note", "1 found")
    assert findings(tab) == []
    tab.keyboard.press("Escape")
    tab.focus("#item-name")
    tab.keyboard.press("!")
    tab.wait_for_selector("#item-flag", state="hidden")
    assert page.session.store.standing.flags == {}
    assert page.session.store.standing.notes == {row: {"ada": "half of it is missing"}}
    assert page.session.store.labels() == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_items_that_were_found_are_labelled_together(open_page, tab, width):
    """Filter, preview, one act; one key takes all of it back."""
    page = open_page(n_known=60)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    p = page.session.latest[0].probabilities
    tab.keyboard.press("/")
    tab.select_option("#find-class", "odd")
    tab.select_option("#find-state", "unlabelled")
    tab.select_option("#find-least", "0.9")
    column = page.session.latest[0].classes.index("odd")
    sure = [r for r in np.flatnonzero(p[:, column] >= 0.9).tolist() if r >= 60]
    assert len(sure) > 3
    wait_for_text(tab, "#hits-note", f"{len(sure)} found")
    tab.focus("#hits-label")
    tab.keyboard.press("Enter")
    wait_for_text(tab, "#alike-accept", f"Label {len(sure)} as odd")
    assert page.session.store.labels() == {}  # a preview writes nothing
    assert findings(tab) == []
    assert fits(tab, width)
    tab.focus("#alikes li:first-child input")
    tab.keyboard.press(" ")  # not this one
    wait_for_text(tab, "#alike-accept", f"Label {len(sure) - 1} as odd")
    tab.focus("#alike-accept")
    tab.keyboard.press("Enter")
    assert saved(page, len(sure) - 1) == dict.fromkeys(sure[1:], "odd")
    tab.focus("#item-name")
    tab.keyboard.press("u")
    wait_for_text(tab, "#said", f"Taken back: {len(sure) - 1} items")
    assert page.session.store.labels() == {}


def test_a_lasso_is_labelled_after_a_preview(open_page, tab):
    page = open_page()
    start(tab, page)
    tab.click("#map-panel summary")
    tab.wait_for_function(
        "() => document.getElementById('map').getAttribute('role') === 'application'"
    )
    tab.focus("#map")
    tab.keyboard.press("s")  # selects what is near
    tab.click("#map-label:enabled")
    tab.wait_for_selector("#alikes li")
    n = tab.locator("#alikes li").count()
    assert n > 1
    assert "The selected items" in tab.text_content("#alike-note")
    tab.click("#alike-all")
    chosen = tab.input_value("#alike-class")
    tab.click("#alike-accept")
    labels = saved(page, n)
    assert list(labels.values()) == [chosen] * n
    tab.focus("#item-name")
    tab.keyboard.press("u")
    for _ in range(100):
        if not page.session.store.labels():
            break
        page_wait()
    assert page.session.store.labels() == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_guidelines_are_text(open_page, tab, tmp_path, width):
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    page = open_page(guidelines=path)
    tab.set_viewport_size({"width": width, "height": 900})
    start(tab, page)
    tab.wait_for_selector("#guidelines h3")
    tags = tab.eval_on_selector_all("#guidelines *", "all => all.map(e => e.tagName)")
    assert tags == ["H3", "P", "B", "EM", "CODE", "UL", "LI", "LI", "OL", "LI"]
    assert "<script>" in tab.text_content("#guidelines p")
    assert tab.title() == "graphuq label"
    assert fits(tab, width)
    assert findings(tab) == []


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", WIDTHS)
def test_people_log_in_by_keys(open_page, tab, tmp_path, width, scheme):
    """The page under its name, as if a proxy were before it; each has the name of the login."""
    path = tmp_path / "users.json"
    set_password(path, "ada", "correct horse battery")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    origin = f"http://127.0.0.1:{port}"
    page = open_page(port=port, hosting=Hosting(path, origin, plain_http=True))
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(page.address)
    tab.wait_for_selector("#login")
    assert fits(tab, width)
    assert findings(tab) == []
    tab.keyboard.type("ada")
    tab.keyboard.press("Tab")
    tab.keyboard.type("wrong password")
    tab.keyboard.press("Enter")
    wait_for_text(tab, "#refusal", "Name or password is wrong.")
    tab.problems.clear()  # the browser reports the refusal
    tab.keyboard.type("correct horse battery")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#item-name")
    tab.wait_for_function(SHOWN)
    assert tab.text_content(".who") == "You: ada"
    page.session.wait_until_current()
    tab.keyboard.press("n")
    tab.keyboard.type("even")
    before = name(tab)
    tab.keyboard.press("Enter")
    tab.wait_for_function(ANOTHER, arg=before)
    saved(page, 1)
    assert [r.user for r in page.session.store.records] == ["ada"]
    assert fits(tab, width)
    assert findings(tab) == []
    tab.focus("#log-out")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#login")
    tab.problems.clear()  # the wait for news was refused
    tab.goto("about:blank")
