"""Takes the pictures of scenes: each state in its own looks."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error, Page

from tests.journeys.axe import STILL
from tests.screenshots.scene import Scene, settle
from tests.screenshots.state import State, state_of

WEBP_QUALITY = 60
TO_PLACE = "() => document.querySelector(':target')?.scrollIntoView()"


@dataclass(frozen=True)
class Look:
    width: int
    height: int
    scheme: Literal["light", "dark"]

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"


WIDE, WIDE_DARK = Look(1440, 900, "light"), Look(1440, 900, "dark")
NARROW, NARROW_DARK = Look(390, 844, "light"), Look(390, 844, "dark")
# The other states show both widths and both themes in two pictures.
LOOKS = {State.TYPICAL: (WIDE, WIDE_DARK, NARROW, NARROW_DARK)}
OTHER_LOOKS = (WIDE, NARROW_DARK)


@dataclass(frozen=True)
class Camera:
    page: Page
    anonymous: Page
    folder: Path
    wanted: tuple[str, ...]
    """What names begin with; all if there is none."""
    failed: list[str] = field(default_factory=list)

    def take(self, scenes: Iterable[Scene], numbers: Mapping[str, object]) -> None:
        for scene in scenes:
            if self.wanted and not scene.name.startswith(self.wanted):
                continue
            try:
                self._take(scene, scene.address.format(**numbers))
            except Error as error:  # the others can be taken
                self.failed.append(f"{scene.name}: {error}")

    def _take(self, scene: Scene, address: str) -> None:
        """One load for all looks: a page changes its width and its theme as it stands."""
        page = self.anonymous if scene.anonymous else self.page
        looks = LOOKS.get(state_of(scene.name), OTHER_LOOKS)
        show(page, looks[0])
        page.goto(address)
        settle(page)
        if scene.act:
            scene.act(page)
        page.evaluate(STILL)
        for look in looks:
            show(page, look)
            page.evaluate(TO_PLACE)
            page.wait_for_timeout(250)  # a chart draws itself again
            (self.folder / f"{scene.name}-{look.name}.webp").write_bytes(picture(page))
        show(page, WIDE)  # for whoever fills it further


def show(page: Page, look: Look) -> None:
    page.set_viewport_size({"width": look.width, "height": look.height})
    page.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")


def picture(page: Page) -> bytes:
    """Return what the window shows as WebP, which Playwright itself does not write."""
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": WEBP_QUALITY}
    data = session.send("Page.captureScreenshot", options)["data"]
    session.detach()
    return base64.b64decode(data)
