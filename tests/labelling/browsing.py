"""What a person does on the labelling page, in a real browser."""

import time

SHOWN = "() => !['', 'Item'].includes(document.getElementById('item-name').textContent)"
# A machine that is busy with other work may fetch the next items late, and nothing is shown then.
ANOTHER = "x => ![x, ''].includes(document.getElementById('item-name').textContent)"

CURRENT = "() => document.getElementById('renewal').textContent === 'up to date'"
TOLD = ("revision", "ready", "busy", "failure", "stage")


def start(tab, page):
    tab.goto(page.address)
    tab.wait_for_function(SHOWN)
    page.session.wait_until_current()
    assert page.session.state("ada")["failure"] == ""
    try:
        tab.wait_for_function(CURRENT)
    except Exception as error:  # as happened on a busy machine
        state = page.session.state("ada")
        error.add_note(f"page: {tab.text_content('#renewal')}, {tab.text_content('#alert')}")
        error.add_note(f"session: { ({name: state[name] for name in TOLD}) }")
        raise


def name(tab):
    return tab.text_content("#item-name")


def keys(tab):
    """Return the key of each class that the page offers."""
    script = "all => all.map(b => ['.name', 'kbd'].map(part => b.querySelector(part).textContent))"
    return dict(tab.eval_on_selector_all("#classes button", script))


def press(tab, key):
    """Press a key and wait for another item."""
    before = name(tab)
    tab.keyboard.press(key)
    tab.wait_for_function(ANOTHER, arg=before)


def label(tab, class_name):
    """Label the item that is shown by keys, as a person does."""
    before, key = name(tab), keys(tab).get(class_name)
    if key is not None:
        tab.keyboard.press(key)
    else:
        tab.keyboard.press("n")
        tab.keyboard.type(class_name)
        tab.keyboard.press("Enter")
    tab.wait_for_function(ANOTHER, arg=before)


def saved(page, n):
    """Wait until n records that are no skips are in the file, and return the labels of it."""
    for _ in range(200):
        if sum(record.kind != "skip" for record in page.session.store.records) >= n:
            break
        page_wait()
    return page.session.store.labels()


def page_wait():
    time.sleep(0.05)
