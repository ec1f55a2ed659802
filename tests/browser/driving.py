"""How a test opens the page in a browser without a window, does things there and sees what becomes of them."""

import base64
import dataclasses
import io
import re
import shutil
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright, which is not installed"
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
BY_SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
WITHOUT = ("--disable-gpu", "--disable-3d-apis")
LONGEST_MS = 20_000


def launched(playwright, *switches):
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"the page is tested in a browser, but none of {', '.join(BROWSERS)} is on PATH")
    try:
        return playwright.chromium.launch(executable_path=found, args=[*QUIET, *switches])
    except sync_api.Error as error:
        pytest.skip(f"playwright cannot start {found}: {str(error).splitlines()[0]}")


@dataclasses.dataclass
class Seen:
    """A page, and what it said and asked for on its way."""

    page: Any
    requests: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)


def opened(browser, file, width=1280, **choice) -> Seen:
    context = browser.new_context(viewport={"width": width, "height": 900}, **choice)
    context.set_default_timeout(LONGEST_MS)
    seen = Seen(context.new_page())
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on("websocket", lambda socket: seen.requests.append(socket.url))
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
    seen.page.goto(file.as_uri())
    if choice.get("java_script_enabled", True):
        seen.page.wait_for_selector("html[data-state]", state="attached")
    return seen


def settle(one) -> None:
    """What was asked for is drawn with the next frame."""
    one.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def picture(one, name: str) -> np.ndarray:
    """The pixels of a view, rows from the top."""
    address = one.evaluate("(name) => document.querySelector(`[data-view=${name}] canvas`).toDataURL()", name)
    return imread(io.BytesIO(base64.b64decode(address.split(",")[1])), format="png")[..., :3]


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", text.replace("\u2212", "-"))]


def point_of(one, whose: str) -> np.ndarray:
    words = one.inner_text("#readout")
    assert words.startswith(whose)
    return np.array(numbers(words)[:3])


def slice_of(one, view) -> float:
    """Where a view's slice lies, along its normal (mm)."""
    words = one.inner_text(f"[data-view={view.name}] .slices output")
    return numbers(words)[0] * (-1 if words.endswith(view.ends[0]) else 1)


def place_on(view, point) -> np.ndarray:
    """Where a point of the world is seen: shares of a picture's width and height, from the upper left."""
    across, upward = (view.axes[:2] @ (np.asarray(point) - view.middle)) / np.array(view.plane.half)
    return np.array([(1 + across) / 2, (1 - upward) / 2])


def canvas_of(one, view):
    found = one.locator(f"[data-view={view.name}] canvas")
    one.eval_on_selector(f"[data-view={view.name}]", "(figure) => figure.scrollIntoView({ block: 'center' })")
    return found


def at(one, view, share) -> tuple[float, float]:
    """Where on the screen a share of a view's picture lies."""
    box = canvas_of(one, view).bounding_box()
    return box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"]


def changed(one: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels that differ."""
    return float(np.mean(np.abs(one - other).max(axis=2) > 0.1))


def is_drawn(one, selector: str) -> bool:
    """Whether a picture is visible, whole, and not of one colour only."""
    image = one.locator(selector)
    if not image.is_visible() or image.bounding_box()["height"] < 100:
        return False
    return np.ptp(imread(io.BytesIO(image.screenshot()), format="png")[..., :3]) > 0.5


def contrast(one, selector: str) -> float:
    """Of words with the page behind them, by WCAG."""
    colours = one.eval_on_selector(
        selector, "(place) => [getComputedStyle(place).color, getComputedStyle(document.body).backgroundColor]"
    )
    light = []
    for colour in colours:
        share = np.array(numbers(colour)[:3]) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        light.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(light) / min(light)
