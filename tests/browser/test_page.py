"""The page in a real browser: what a person does changes what is seen, truthfully, and nothing leaves the machine.

One Chromium without a window opens the page of a made-up result, whose CT has a known value everywhere.
"""

import dataclasses
import io
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from matplotlib.image import imread

from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.report.page import NAME, page, write_text
from logishape.report.rows import measurement_rows, parameter_rows
from logishape.report.scene import scene_of
from logishape.report.views import start_of, views_of
from tests.browser.driving import (
    BY_SOFTWARE,
    WITHOUT,
    Seen,
    at,
    canvas_of,
    changed,
    contrast,
    is_drawn,
    launched,
    numbers,
    opened,
    picture,
    place_on,
    point_of,
    settle,
    slice_of,
    sync_api,
)
from tests.made_up import REASON, hu_at, made_up

MOST_BYTES = 8_000_000
CONTOURS = ("segmentation", "shape", "band", "crosshair")


@pytest.fixture(scope="module")
def stored():
    return made_up()


@pytest.fixture(scope="module")
def file(stored, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    write_text(folder, page(stored))
    return folder / NAME


@pytest.fixture(scope="module")
def playwright():
    try:
        started = sync_api.sync_playwright().start()
    except (OSError, sync_api.Error) as error:
        pytest.skip(f"playwright cannot start: {error}")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def browser(playwright):
    with launched(playwright, *BY_SOFTWARE) as one:
        yield one


@pytest.fixture(scope="module")
def plain_browser(playwright):
    """Without WebGL."""
    with launched(playwright, *WITHOUT) as one:
        yield one


@pytest.fixture(scope="module")
def solid(browser, file) -> Seen:
    """With WebGL, which software does slowly: for what needs it."""
    return opened(browser, file, width=800)


@pytest.fixture(scope="module")
def plain(plain_browser, file) -> Seen:
    return opened(plain_browser, file)


@pytest.fixture(scope="module")
def scriptless(plain_browser, file) -> Seen:
    return opened(plain_browser, file, java_script_enabled=False)


@pytest.fixture
def wide(plain):
    """The page as it is at first, whatever other tests did to it."""
    one = plain.page
    one.emulate_media(media="screen", color_scheme="light")
    one.evaluate(
        """() => {
          for (const box of document.querySelectorAll("[data-shows]:not(:checked)")) box.click();
          const overlay = document.getElementById("overlay");
          overlay.value = "none";
          overlay.dispatchEvent(new Event("change"));
          for (const name of ["window", "point"]) document.getElementById(`reset-${name}`).click();
          scrollTo(0, 0);
        }"""
    )
    one.mouse.move(2, 2)
    settle(one)
    return one


@pytest.fixture(scope="module")
def views(stored):
    return {view.name: view for view in views_of(stored)}


def test_the_record_that_was_made_up_is_a_whole_one(stored):
    schema = DEFAULT_FILE.with_name("result.schema.json")
    jsonschema.validate(stored.record, json.loads(schema.read_text()))


def test_it_comes_alive_without_a_request_or_an_error(solid, plain, scriptless, file):
    for one in (solid, plain, scriptless):
        assert [url for url in one.requests if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
        assert one.errors == []
    assert [one.page.get_attribute("html", "data-state") for one in (solid, plain)] == ["ready", "ready"]


def test_the_verdict_comes_first_with_its_reason(wide):
    verdict = wide.locator(".verdict")
    assert verdict.inner_text().startswith("Check: look at the pictures")
    assert REASON in verdict.inner_text()
    assert "left ear" in wide.inner_text("h1")
    assert wide.locator(".thumbnail img").bounding_box()["y"] < 200
    assert wide.locator("figure.view").count() == 6


@pytest.mark.parametrize("name", ["axial", "across"])
def test_wheel_slider_and_keys_change_the_slice(wide, views, name):
    view, start = views[name], point_of(wide, "Crosshair")
    canvas, slider = canvas_of(wide, view), wide.locator(f"[data-view={name}] input")
    wide.mouse.move(*at(wide, view, (0.4, 0.3)))

    def wheel():
        wide.mouse.wheel(0, -120)

    def wheel_with_shift():
        wide.keyboard.down("Shift")
        wide.mouse.wheel(120, 0)  # sideways, as browsers make it with shift
        wide.keyboard.up("Shift")

    moves = (
        (wheel, 0.1),
        (wheel_with_shift, -0.4),
        (lambda: canvas.press("ArrowUp"), -0.3),
        (lambda: canvas.press("PageDown"), -0.8),
        (lambda: slider.press("ArrowRight"), -0.7),
        (lambda: slider.fill("1.5"), 1.5),
    )
    before, offset = picture(wide, name), 0.0
    for move, expected in moves:
        under = point_of(wide, "Cursor")
        move()
        wide.wait_for_timeout(30)  # wheels come with the next frame
        settle(wide)
        after = picture(wide, name)
        assert np.abs(after - before).max() > 0.02
        assert slice_of(wide, view) == pytest.approx(expected, abs=0.001)
        # The words are of what is under the cursor now; 0.01 mm is how they are rounded.
        stepped = point_of(wide, "Cursor") - under
        np.testing.assert_allclose(stepped, (expected - offset) * view.axes[2], atol=0.011)
        before, offset = after, expected
    canvas.press("Home")
    wide.mouse.move(2, 2)
    settle(wide)
    assert slice_of(wide, view) == 0
    np.testing.assert_allclose(point_of(wide, "Crosshair"), start)


def test_each_view_scrolls_along_its_own_normal(wide, views):
    for view in views.values():
        before, others = picture(wide, view.name), [slice_of(wide, one) for one in views.values()]
        wide.locator(f"[data-view={view.name}] canvas").press("PageUp")
        settle(wide)
        assert np.abs(picture(wide, view.name) - before).max() > 0.02
        moved = [slice_of(wide, one) for one in views.values()]
        along = [0.5 * view.axes[2] @ one.axes[2] for one in views.values()]
        np.testing.assert_allclose(np.subtract(moved, others), along, atol=0.11)  # words have steps of 0.1 mm


def test_the_crosshair_is_one_point_in_all_views(wide, views, stored):
    np.testing.assert_allclose(point_of(wide, "Crosshair"), start_of(stored), atol=0.006)
    wide.mouse.click(*at(wide, views["coronal"], (0.62, 0.37)))
    wide.mouse.click(*at(wide, views["basal"], (0.45, 0.31)))
    wide.mouse.move(2, 2)
    settle(wide)
    point = point_of(wide, "Crosshair")
    words = wide.inner_text("#readout")
    assert numbers(words)[3] == pytest.approx(hu_at(point), abs=3)  # 0.005 mm and half a unit
    assert " HU " in words
    np.testing.assert_allclose(place_on(views["basal"], point), [0.45, 0.31], atol=0.004)  # a pixel, 0.01 mm
    for view in views.values():
        assert slice_of(wide, view) == pytest.approx(view.axes[2] @ (point - view.middle), abs=0.06)
        across, down = place_on(view, point)
        shown = picture(wide, view.name)
        greens = shown[..., 1] - 0.5 * (shown[..., 0] + shown[..., 2])
        rows, columns = greens.shape
        drawn = np.argmax(greens[: rows // 20].mean(axis=0)), np.argmax(greens[:, : columns // 20].mean(axis=1))
        np.testing.assert_allclose(drawn, [across * columns, down * rows], atol=2)
    wide.locator("[data-view=axial] canvas").press("Shift+ArrowRight")
    settle(wide)
    np.testing.assert_allclose(point_of(wide, "Crosshair") - point, 0.1 * views["axial"].axes[0], atol=0.011)
    wide.click("#reset-point")
    settle(wide)
    np.testing.assert_allclose(point_of(wide, "Crosshair"), start_of(stored), atol=0.006)


@pytest.mark.parametrize("name", CONTOURS)
def test_each_contour_can_be_switched(wide, name):
    with_it = picture(wide, "basal")
    wide.uncheck(f'[data-shows="{name}"]')
    settle(wide)
    without = picture(wide, "basal")
    assert np.mean(np.abs(without - with_it).max(axis=2) > 0.05) > 0.002
    wide.check(f'[data-shows="{name}"]')
    settle(wide)
    np.testing.assert_array_equal(picture(wide, "basal"), with_it)


def test_contours_lie_where_they_should(wide, views, stored):
    """Solid at one half of the probability, dashed at the level's zero: here both are the tube's wall."""
    view = views["modiolar"]
    for name in CONTOURS:
        wide.uncheck(f'[data-shows="{name}"]')
    settle(wide)
    bare = picture(wide, view.name)
    for name, least in (("segmentation", 0.95), ("shape", 0.5)):
        wide.check(f'[data-shows="{name}"]')
        settle(wide)
        drawn = np.argwhere(np.abs(picture(wide, view.name) - bare).max(axis=2) > 0.3)
        wide.uncheck(f'[data-shows="{name}"]')
        rows, columns = bare.shape[:2]
        across = (2 * (drawn[:, 1] + 0.5) / columns - 1) * view.plane.half[0]
        upward = (1 - 2 * (drawn[:, 0] + 0.5) / rows) * view.plane.half[1]
        points = view.middle + np.outer(across, view.axes[0]) + np.outer(upward, view.axes[1])
        index = np.rint(stored.level.to_index(points)).astype(int)
        level = stored.level.data[tuple(index.T)]
        assert len(drawn) > 200
        assert np.mean(np.abs(level) < 0.3) > 0.99  # mm: a voxel and the line's width
        assert least * 300 < len(drawn)


def test_window_and_level_are_those_of_the_sliders(wide, views):
    for name in CONTOURS:
        wide.uncheck(f'[data-shows="{name}"]')

    def grey_is_right() -> bool:
        settle(wide)
        low, high = window()
        share = np.array([0.31, 0.43])
        view = views["coronal"]
        across, upward = (2 * share - 1) * [1, -1] * view.plane.half
        value = hu_at(view.middle + across * view.axes[0] + upward * view.axes[1])
        shown = picture(wide, view.name)
        grey = shown[int(share[1] * shown.shape[0]), int(share[0] * shown.shape[1])]
        # Half a pixel (0.02 mm, 4 HU) beside the place, and a 255th.
        return bool(np.allclose(grey, np.clip((value - low) / (high - low), 0, 1), atol=8 / (high - low) + 0.006))

    def window() -> tuple[float, float]:
        level, width = (numbers(wide.inner_text(f"#{name}-value"))[0] for name in ("level", "width"))
        return level - width / 2, level + width / 2

    usual = window()
    assert usual == (-400, 2000)  # a quarter beyond lumen and bone
    assert wide.inner_text("#level-value").endswith("HU")
    assert grey_is_right()
    wide.locator("#width").press("PageDown")
    wide.locator("#level").press("PageDown")
    assert window() != usual
    assert grey_is_right()
    left, top = at(wide, views["coronal"], (0.5, 0.5))
    wide.mouse.move(left, top)
    wide.mouse.down(button="right")
    wide.mouse.move(left + 40, top - 30)
    wide.mouse.up(button="right")
    dragged = window()
    assert dragged[1] - dragged[0] > 1.1 * (usual[1] - usual[0]) * 0.8
    assert grey_is_right()
    wide.click("#reset-window")
    assert window() == usual
    assert grey_is_right()


def test_overlays_have_a_legend(wide):
    legend, nothing = wide.locator("#legend"), picture(wide, "axial")
    assert not legend.is_visible()
    shown = {}
    for name, words in (("probability", "probability that a voxel is cochlea"), ("uncertainty", "bits")):
        wide.select_option("#overlay", name)
        settle(wide)
        shown[name] = picture(wide, "axial")
        assert np.mean(np.abs(shown[name] - nothing).max(axis=2) > 0.1) > 0.01
        assert words in legend.inner_text()
        assert "gradient" in legend.locator(".ramp").evaluate("(ramp) => getComputedStyle(ramp).backgroundImage")
    assert np.abs(shown["probability"] - shown["uncertainty"]).max() > 0.2
    wide.select_option("#overlay", "none")
    settle(wide)
    assert not legend.is_visible()
    np.testing.assert_array_equal(picture(wide, "axial"), nothing)


@pytest.fixture
def surface(solid):
    """The page where WebGL works, and its picture of the surface as a function that takes it."""
    one = solid.page
    if "has-surface" not in (one.get_attribute("html", "class") or ""):
        pytest.skip("this browser has no WebGL")
    place = one.locator("#surface")
    one.eval_on_selector("#surface", "(place) => place.scrollIntoView({ block: 'center' })")

    def taken() -> np.ndarray:
        settle(one)
        one.wait_for_timeout(100)  # plotly draws after the frame
        settle(one)
        return imread(io.BytesIO(place.screenshot()), format="png")[8:-8, 8:-8, :3]  # without the ring of the focus

    return one, taken


def test_the_surface_is_coloured_as_is_asked_for(surface):
    one, taken = surface
    shown = {}
    for name, words in (("frequency_hz", "Hz"), ("sd_mm", "mm"), ("angle_degrees", "degrees")):
        one.select_option("#colouring", name)
        shown[name] = taken()[100:-120, 150:-150]  # without the legend
        assert words in one.locator("#surface .infolayer").text_content()
    for first, second in (("frequency_hz", "sd_mm"), ("sd_mm", "angle_degrees"), ("angle_degrees", "frequency_hz")):
        assert changed(shown[first], shown[second]) > 0.05
    labels = {text.strip() for text in one.locator("#surface .annotation-text").all_text_contents()}
    assert {"0°", "90°", "180°", "360°", "720°", "apex", "head"} <= labels
    one.uncheck("#see-through")
    assert changed(taken()[100:-120, 150:-150], shown["angle_degrees"]) > 0.02
    one.check("#see-through")


def test_the_surface_turns(surface):
    one, taken = surface
    box = one.locator("#surface").bounding_box()
    left, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag():
        one.mouse.move(left, top)
        one.mouse.down()
        one.mouse.move(left + 120, top + 40, steps=3)
        one.mouse.up()

    keys = one.locator("#surface")
    last = first = taken()
    for move in (
        drag,
        lambda: keys.press("ArrowLeft"),
        lambda: keys.press("+"),
        lambda: one.click("[data-sight=apex]"),
    ):
        move()
        turned = taken()
        assert changed(turned, last) > 0.01
        last = turned
    keys.press("Home")
    assert changed(taken(), first) < 0.002


def assert_all_numbers(one, record) -> None:
    text = re.sub(r"\s+", " ", one.inner_text("body").replace("\u00a0", " "))
    rows = [row for is_main in (True, False) for row in measurement_rows(record, is_main)] + parameter_rows(record)
    assert len(rows) > 40
    for row in rows:
        assert row.words in text
        for number in (row.median, row.interval, row.population):
            assert number.replace("\u00a0", " ") in text
    for words in ("logishape 0.0.1", "0123456789abcdef" * 4, "seed 4711", "num_starts 2", "not a medical device"):
        assert words in text
    assert one.locator("svg.chart").count() == 5


def test_without_webgl_the_surface_is_a_still(plain, stored):
    one = plain.page
    assert one.get_attribute("html", "class") == "has-views"
    assert one.get_attribute("html", "data-state") == "ready"
    assert not one.locator("#surface-panel").is_visible()
    assert one.locator("#viewer").is_visible()
    assert is_drawn(one, ".still-surface img")
    assert_all_numbers(one, stored.record)


def test_without_scripts_there_are_stills_and_all_numbers(scriptless, stored):
    one = scriptless.page
    assert not one.locator("#viewer").is_visible()
    assert not one.locator("#surface-panel").is_visible()
    for selector in (".thumbnail img", ".still-views img", ".still-surface img"):
        assert is_drawn(one, selector)
    assert_all_numbers(one, stored.record)


def test_printed_it_shows_stills_in_ink_on_paper(wide, stored):
    wide.emulate_media(media="print", color_scheme="dark")
    assert not wide.locator("#viewer").is_visible()
    assert not wide.locator("#surface-panel").is_visible()
    assert wide.locator(".still-views img").is_visible()
    assert wide.locator(".still-surface img").is_visible()
    assert contrast(wide, "td") > 15
    assert_all_numbers(wide, stored.record)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out(wide, scheme):
    wide.emulate_media(color_scheme=scheme)
    for selector in ("td", ".small", "figcaption", "#toolbar legend", "dd"):
        assert contrast(wide, selector) > 4.5  # WCAG, level AA


def test_all_can_be_done_without_a_mouse(wide):
    nameless = wide.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [tabindex]")]
             .filter((one) => !one.getAttribute("aria-label") && !one.labels?.length && !one.textContent.trim())
             .map((one) => one.outerHTML)"""
    )
    assert nameless == []
    reached = set()
    wide.focus("[data-shows=segmentation]")
    for _ in range(11):
        wide.keyboard.press("Tab")
        name, ring = wide.evaluate(
            """() => [document.activeElement.id || document.activeElement.tagName,
                getComputedStyle(document.activeElement).outlineStyle]"""
        )
        reached.add(name)
        assert ring != "none"
    assert {"overlay", "level", "width", "reset-window", "reset-point", "CANVAS", "INPUT"} <= reached


def test_a_phone_has_no_need_to_scroll_sideways(solid):
    one = solid.page
    one.set_viewport_size({"width": 390, "height": 844})
    settle(one)
    assert one.evaluate("() => document.documentElement.scrollWidth") <= 390
    beyond = one.evaluate(
        """() => [...document.querySelectorAll("body :not(svg *)")]
             .filter((one) => one.getBoundingClientRect().right > 391 && !one.closest("#surface"))
             .map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert beyond == []
    assert one.locator("figure.view canvas").first.bounding_box()["width"] > 340
    assert solid.errors == []


def test_it_stays_small_with_all_voxels_and_noise(stored, file):
    fine = made_up(spacing_mm=0.16)  # a million voxels, the most that a page holds
    noise = np.random.default_rng(0).normal(0, 150, fine.ct.shape)
    noisy = dataclasses.replace(fine, ct=fine.ct.with_data(np.rint(fine.ct.data + noise).astype(np.int16)))
    beyond = len(json.dumps(scene_of(noisy))) - len(json.dumps(scene_of(stored)))
    assert file.stat().st_size < MOST_BYTES
    assert beyond > 1e6
    assert file.stat().st_size + beyond < MOST_BYTES
