"""The scripts of the report in a real browser, offline; skipped in words without one."""

import shutil

import pytest

from graphuq.utils.html import bundled

MAP_PAGE = """<!doctype html><html lang="en"><title>map</title>
<style>body {{ margin: 0 }} canvas {{ width: 600px; height: 400px; display: block }}</style>
<canvas id="map"></canvas><script type="module">{script}
let seed = 1;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
const n = {n}, x = Float32Array.from({{ length: n }}, random);
const y = Float32Array.from({{ length: n }}, random), color = new Uint8Array(n).fill(3);
const seen = {{ hover: [], click: [], lasso: [] }};
const map = createMap(document.getElementById("map"), {{ x, y, color, emphasis: [0] }}, {{
  onHover: (i) => seen.hover.push(i),
  onClick: (i) => seen.click.push(i),
  onLasso: (found) => seen.lasso.push([...found]),
}});
Object.assign(window, {{ map, seen, x, y, n, color, inPolygon }});
</script></html>"""


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium: the one of the system, or the one that Playwright installed."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="pip install playwright, to test pages in a browser"
    )
    with sync_api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            opened = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox", "--disable-gpu"]
            )
        except sync_api.Error as error:
            pytest.skip(f"no browser: run `playwright install chromium` ({error.message[:80]})")
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page without network, whose script errors and requests fail the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True)
    opened, problems = context.new_page(), []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    opened.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(r.url),
    )
    yield opened
    context.close()
    assert problems == []


@pytest.fixture
def points(page, tmp_path):
    (tmp_path / "map.html").write_text(MAP_PAGE.format(script=bundled("map.js"), n=2000))
    page.goto((tmp_path / "map.html").as_uri())
    return page


def test_map_finds_the_point_under_the_pointer(points):
    at = points.evaluate("map.position(17)")
    points.mouse.move(at["x"], at["y"])
    assert points.evaluate("seen.hover.at(-1)") == 17
    points.mouse.down()
    points.mouse.up()
    assert points.evaluate("seen.click") == [17]
    distance = "Math.abs(map.position(17).x - map.position(18).x)"
    before = points.evaluate(distance)
    points.mouse.wheel(0, -600)
    points.wait_for_function(f"{distance} > {2 * before}")
    again = points.evaluate("map.position(17)")
    assert again == pytest.approx(at, abs=1.5)  # zooming is about the pointer, a whole pixel
    points.evaluate("map.setVisible(Uint8Array.from({ length: n }, (_, i) => i !== 17))")
    points.mouse.move(at["x"] + 1, at["y"])
    assert points.evaluate("seen.hover.at(-1)") != 17


def test_map_pixels_have_the_colour_of_the_class(points):
    pixel = """([x, y]) => { const c = document.getElementById("map");
      return [...c.getContext("2d").getImageData(x, y, 1, 1).data]; }"""
    points.evaluate("map.setVisible(Uint8Array.from({ length: n }, (_, i) => i === 5))")
    points.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
    at = points.evaluate("map.position(5)")
    found = points.evaluate(pixel, [round(at["x"]), round(at["y"])])
    purple = [0x8A, 0x5F, 0xB8]  # the fourth class
    assert found[:3] == pytest.approx([0.85 * c + 0.15 * 255 for c in purple], abs=25)


def test_map_lasso_selects_what_is_inside(points):
    points.evaluate('map.setMode("lasso")')
    corners = [(100, 100), (400, 120), (300, 300)]
    points.mouse.move(*corners[0])
    points.mouse.down()
    for corner in corners[1:]:
        points.mouse.move(*corner, steps=3)
    points.mouse.up()
    (found,) = points.evaluate("seen.lasso")
    places = points.evaluate("Array.from({ length: n }, (_, i) => map.position(i))")
    (x0, y0), (x1, y1), (x2, y2) = corners

    def side(p, xa, ya, xb, yb):
        return (xb - xa) * (p["y"] - ya) - (yb - ya) * (p["x"] - xa)

    inside = [
        i
        for i, p in enumerate(places)
        if side(p, x0, y0, x1, y1) > 0 and side(p, x1, y1, x2, y2) > 0
        if side(p, x2, y2, x0, y0) > 0
    ]
    assert len(inside) > 50
    assert found == inside
    points.keyboard.press("Escape")
    assert points.evaluate("seen.lasso.at(-1)") == []


def test_map_works_by_keyboard(points):
    points.focus("#map")
    for _ in range(3):
        points.keyboard.press("ArrowRight")
    visited = points.evaluate("seen.hover")
    assert len(set(visited)) == 3
    columns = points.evaluate(f"{visited}.map((i) => map.position(i).x)")
    assert columns == sorted(columns)
    points.keyboard.press("Enter")
    assert points.evaluate("seen.click") == [visited[-1]]
    points.keyboard.press("s")
    assert len(points.evaluate("seen.lasso.at(-1)")) == 2000


@pytest.mark.slow
def test_map_draws_fifty_thousand_points_in_a_few_milliseconds(page, tmp_path):
    """Measured 15 ms a frame with the wait for it, on one core; the bound leaves room."""
    (tmp_path / "map.html").write_text(MAP_PAGE.format(script=bundled("map.js"), n=50_000))
    page.goto((tmp_path / "map.html").as_uri())
    frame = """async () => { const times = [];
      for (let k = 0; k < 20; k++) { const start = performance.now(); map.zoomBy(1.01);
        await new Promise(requestAnimationFrame); times.push(performance.now() - start); }
      return times.sort((a, b) => a - b)[10]; }"""
    assert page.evaluate(frame) < 60
