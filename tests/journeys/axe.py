"""What axe-core finds on a page, by all its rules: wide and narrow, in light and dark."""

from typing import Any, Literal

from playwright.sync_api import Page

from tests.stack import ROOT

AXE = ROOT / "tests" / "vendor" / "axe" / "axe-core-4.14.1.min.js"

# What nobody reads is not made: the selector of each node that passed, a copy of each stylesheet
# (only a rule that is off wants one).
RUN = """async (rules) => {
  const asked = {resultTypes: ["violations"], selectors: false, preload: {assets: ["media"]}};
  const frame = () => new Promise(requestAnimationFrame);
  for (let n = 0; n < 2; n += 1) await frame(); // whoever listens for the theme has heard of it
  for (const animation of document.getAnimations()) animation.finish();
  const ours = !document.documentElement.classList.contains("dark-mode");  // not Swagger UI's
  const {violations} = await axe.run(document, {...asked, ...ours ? rules : {}});
  const said = (node) => `${node.html.slice(0, 160)} (${node.failureSummary.slice(0, 200)})`;
  return violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(said).join(" | ")}`);
}"""
COLOURS = ("color-contrast", "link-in-text-block")
ALL_RULES: dict[str, Any] = {}
RULES_OF_COLOUR = {"runOnly": {"type": "rule", "values": list(COLOURS)}}

WIDE, NARROW, HEIGHT = 1440, 390, 900
# All rules at each width. Our dark differs by colours alone (tests/repository/test_stylesheets.py),
# so the rules that read no colour would only say again what they said of the light page.
LOOKS: tuple[tuple[int, Literal["light", "dark"], dict[str, Any]], ...] = (
    (WIDE, "light", ALL_RULES),
    (WIDE, "dark", RULES_OF_COLOUR),
    (NARROW, "dark", RULES_OF_COLOUR),
    (NARROW, "light", ALL_RULES),
)

# Colours change at once: one that is on its way from light to dark is neither.
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, ::before, ::after { transition: none !important; }");
  document.adoptedStyleSheets.push(sheet);
}"""


def violations(page: Page, what: str) -> list[str]:
    """Of the page as it is, in each look: resized, for loading it again takes longer."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.evaluate(STILL)
    said: list[str] = []
    for width, scheme, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        said += [f"{width} {scheme} {what} {found}" for found in page.evaluate(RUN, rules)]
    page.set_viewport_size({"width": WIDE, "height": HEIGHT})
    return said
