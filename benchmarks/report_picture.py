"""Photograph the page of a stored result, from its top to the end of the slices.

    logishape cochlea ../shared/data/bony_labyrinth/F01/ct.nii.gz -o out/F01
    python benchmarks/report_picture.py out/F01/left [--out docs/images/report.png]

Needs playwright (of the development packages) and a Chromium on PATH.
"""

import argparse
import io
import shutil
from pathlib import Path

from engine import report
from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

WIDTH, MARGIN = 1280, 4
NUM_BITS = 6  # of each colour: a smaller file, and nobody sees it


def photograph(file: Path) -> Image.Image:
    """The page's upper part."""
    browser_file = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_file, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-state]", state="attached")
        box = page.locator("#views").bounding_box()
        assert box is not None
        content = page.screenshot(full_page=True)
        browser.close()
    bottom = round(box["y"] + box["height"]) + MARGIN
    return Image.open(io.BytesIO(content)).convert("RGB").crop((0, 0, WIDTH, bottom))


def main() -> None:
    """Takes it and says how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/images/report.png"))
    chosen = parser.parse_args()
    taken = photograph(chosen.result / "report.html")
    ImageOps.posterize(taken, NUM_BITS).save(chosen.out, optimize=True)
    report(f"{chosen.out}: {chosen.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
