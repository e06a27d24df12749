"""Pictures of every page: empty, typical, long and with an error; typical ones also narrow, dark.

`python -m tests.screenshots FOLDER [NAME ...]`: into the folder, with a page that shows them;
of the pages whose names begin so. A whole workbench is started and filled for it.
"""

import argparse
import base64
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from tests.journeys.conftest import arrive
from tests.screenshots.index import State, state_of, write_index
from tests.screenshots.sample_data import fill
from tests.stack import Stack


@dataclass(frozen=True)
class Look:
    width: int
    height: int
    scheme: Literal["light", "dark"]

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"


WIDE, WIDE_DARK = Look(1440, 900, "light"), Look(1440, 900, "dark")
NARROW = Look(390, 844, "light")
LOOKS = {State.TYPICAL: (WIDE, WIDE_DARK, NARROW)}
# Of a workbench in which nobody has done anything.
EMPTY = {
    f"{name}-empty": f"/{name}/"
    for name in ("chat", "datasets", "classify", "generate", "servers", "tools")
}
WRONG = {"not-found-error": "/chat/999999/"}
WEBP_QUALITY = 70
SETTLED_MS = 700  # charts and what is fetched after the page


def take(page: Page, folder: Path, pages: Mapping[str, str], wanted: tuple[str, ...]) -> None:
    for name, address in pages.items():
        if wanted and not name.startswith(wanted):
            continue
        for look in LOOKS.get(state_of(name), (WIDE,)):
            page.set_viewport_size({"width": look.width, "height": look.height})
            page.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")
            page.goto(address)
            page.wait_for_timeout(SETTLED_MS)  # no state says that a picture is whole
            (folder / f"{name}-{look.name}.webp").write_bytes(picture(page))


def picture(page: Page) -> bytes:
    """Return what the window shows as WebP, which Playwright itself does not write."""
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": WEBP_QUALITY}
    data = session.send("Page.captureScreenshot", options)["data"]
    session.detach()
    return base64.b64decode(data)


def log_in(browser: Browser, stack: Stack) -> Page:
    page = browser.new_context(base_url=stack.url).new_page()
    page.goto(stack.login_url)
    arrive(page, r"//[^/]+/$")
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    names = tuple(chosen.names)
    with (
        Stack() as stack,
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as uploads,
    ):
        program = os.environ.get("WORKBENCH_CHROMIUM") or None
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = log_in(browser, stack)
        take(page, chosen.folder, EMPTY, names)
        sample = fill(page, Path(uploads))
        take(page, chosen.folder, {**sample.pages, **WRONG}, names)
        write_index(chosen.folder)
        browser.close()


if __name__ == "__main__":
    main()
