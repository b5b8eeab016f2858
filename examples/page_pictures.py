"""Take the pictures of the report and of the labelling page that README and docs show.

The report is the one of ``docs/report.md``. On the labelling page, 40 of 800 digits have been
labelled by keys. Both are photographed in Chromium, by Playwright.

    python examples/page_pictures.py docs/images
"""

import doctest
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import graphuq as gq

GUIDE = Path(__file__).parents[1] / "docs" / "report.md"
SHOWN = "x => !['', 'Item', x].includes(document.getElementById('item-name').textContent)"
ARRANGED = "!document.getElementById('map-note').textContent.startsWith('Arranging')"
UP_TO_DATE = "document.getElementById('renewal').textContent === 'up to date'"


def write_report(folder):
    """Run the first example of the guide to the report in a folder."""
    example = GUIDE.read_text("utf-8").split("```python")[1].split("```")[0]
    before = Path.cwd()
    os.chdir(folder)
    try:
        names = {}
        for part in doctest.DocTestParser().get_examples(example):
            exec(part.source, names)
    finally:
        os.chdir(before)
    return folder / "report.html"


def take_report(browser, page, folder):
    """Photograph the report's first screen, and its map, a node being chosen."""
    for name, width, first, last in (
        ("report", 1080, "h1", ".questions"),
        ("report_map", 800, "h2:has-text('Map')", "#legend"),
    ):
        tab = browser.new_page(viewport={"width": width, "height": 1000})
        tab.goto(page.as_uri())
        tab.click("#rows tr:first-child")
        tab.evaluate("scrollTo(0, 0)")
        tab.wait_for_timeout(500)
        top = max(0, tab.locator(first).first.bounding_box()["y"] - 12)
        end = tab.locator(last).bounding_box()
        height = end["y"] + end["height"] + 12 - top
        clip = {"x": 0, "y": top, "width": width, "height": height}
        tab.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip)


def take_labelling_page(browser, folder, work):
    """Label 40 digits by their keys, and photograph the page."""
    digits = gq.datasets.load_digits()
    pictures = digits.data[:800].reshape(-1, 8, 8)
    truth = digits.target[:800].astype(int).astype(str)
    page = gq.label(
        digits.data[:800],
        pictures,
        classes=[str(digit) for digit in range(10)],
        labels=work / "labels.jsonl",
        open_browser=False,
        user="ada",
        title="Digits",
    )
    tab = browser.new_page(viewport={"width": 1100, "height": 1000})
    tab.goto(page.address)
    before = ""
    for count in range(41):
        tab.wait_for_function(SHOWN, arg=before)
        before = tab.text_content("#item-name")
        if count < 40:
            tab.keyboard.press(truth[int(re.sub(r"\D", "", before))])
        if count % 4 == 3:
            page.session.wait_until_current()
            tab.wait_for_function(f"() => {UP_TO_DATE}")
    tab.click("#map-panel summary")
    tab.wait_for_function(f"() => {ARRANGED}", timeout=120_000)
    tab.wait_for_timeout(500)
    tab.screenshot(path=folder / "labelling_page.png", full_page=True)
    page.close()


def main():
    """Take all three."""
    folder = Path(sys.argv[1])
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        report = write_report(Path(name))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        take_report(browser, report, folder)
        take_labelling_page(browser, folder, Path(name))
        browser.close()
    for name in ("report", "report_map", "labelling_page"):
        path = folder / f"{name}.png"
        Image.open(path).quantize(256).save(path, optimize=True)  # a third of the bytes


if __name__ == "__main__":
    main()
