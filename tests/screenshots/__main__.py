"""Pictures of every page: empty, typical, long and with an error.

`python -m tests.screenshots FOLDER [NAME ...]`: into the folder, with a page that shows them;
of the scenes whose names begin so. A whole workbench is started and filled for it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.journeys.conftest import arrive
from tests.screenshots.camera import Camera
from tests.screenshots.index import write_index
from tests.screenshots.samples.crowd import crowd
from tests.screenshots.samples.data import fill
from tests.screenshots.samples.faults import begin, break_things, mend
from tests.screenshots.samples.programs import measure, run_programs
from tests.screenshots.scenes.empty import BEGUN, NEW
from tests.screenshots.scenes.errors import AWAY, ERRORS
from tests.screenshots.scenes.long import LONG
from tests.screenshots.scenes.typical import TYPICAL
from tests.stack import Stack


def log_in(browser: Browser, stack: Stack) -> Page:
    page = browser.new_context(base_url=stack.url).new_page()
    page.goto(stack.login_url)
    arrive(page, r"//[^/]+/$")
    return page


def take_all(camera: Camera, stack: Stack, uploads: Path) -> None:
    """Take the scenes of each state when the workbench is in it."""
    page = camera.page
    camera.take(NEW, {})
    numbers = fill(page, uploads, begin(page))
    numbers["batch"] = run_programs(stack, page)
    measure(page)
    camera.take(TYPICAL, numbers)
    camera.take(BEGUN, numbers)
    numbers |= break_things(page, numbers)
    camera.take(AWAY, numbers)
    mend(page)
    camera.take(ERRORS, numbers)
    camera.take(LONG, numbers | crowd(page, numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with (
        Stack() as stack,
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as uploads,
    ):
        program = os.environ.get("WORKBENCH_CHROMIUM") or None
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        anonymous = browser.new_context(base_url=stack.url).new_page()
        camera = Camera(log_in(browser, stack), anonymous, chosen.folder, tuple(chosen.names))
        take_all(camera, stack, Path(uploads))
        write_index(chosen.folder)
        browser.close()
    if camera.failed:
        sys.exit("\n".join(["These pictures were not taken:", *camera.failed]))


if __name__ == "__main__":
    main()
