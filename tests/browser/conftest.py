"""A workbench whose model says what the tests know, and tabs that check each frame they show."""

import json
import math
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from apps.core.text import markdown
from tests.browser.teller import CALLED, OTHER, TEXT, THOUGHT, TYPESET, Teller
from tests.journeys.conftest import PATIENCE
from tests.journeys.conftest import chromium as chromium
from tests.journeys.conftest import logged_in as logged_in
from tests.stack import Stack

OTHER_QUESTION = "Something else, please."

# What an answer shows, block by block, without what scripts add to a block; and a watch over what
# is being written: a finished block must be one of a text that the model says, and stay as it is.
WATCH = """
window.wrong = [];
window.clean = (element) => {
  const copy = element.cloneNode(true);
  for (const added of copy.querySelectorAll(".code-buttons, .table-buttons")) added.remove();
  for (const seen of copy.querySelectorAll("[data-seen]")) seen.removeAttribute("data-seen");
  for (const formula of copy.querySelectorAll("code.math, .math-shown")) {
    formula.replaceWith(document.createElement("math"));
  }
  const bundles = copy.querySelectorAll(":scope > .bundle");
  for (const bundle of bundles) bundle.replaceWith(...bundle.childNodes);
  const caret = / class="caret"| caret(?=")/;
  return [...copy.children].map((block) => block.outerHTML.replace(caret, "")).join("");
};
window.asBlocks = (html) => {
  const element = document.createElement("div");
  element.innerHTML = html;
  return clean(element);
};
window.live = (article = document.querySelector("article[data-events]")) =>
  [...article?.querySelectorAll("[data-text]") ?? []].map(clean).filter((part) => part).join("");
const said = TEXTS.map((text) => ({text, blocks: null}));  // each is parsed once, when wanted
const isSaid = (shown) =>
  said.some((one) => (one.blocks ??= asBlocks(one.text)).includes(shown));
const finished = new Map();
const html = (block) => {
  const around = document.createElement("div");
  around.append(block.cloneNode(true));
  return clean(around);
};
window.changed = () => [...finished]
  .filter(([block, was]) => block.isConnected && html(block) !== was)
  .map(([block]) => block.outerHTML);
new MutationObserver(() => {
  for (const part of document.querySelectorAll("article[data-events] [data-finished]")) {
    const blocks = [...part.querySelectorAll(":scope > .bundle > *")];
    for (const block of blocks.slice(0, Number(part.dataset.finished))) {
      if (finished.has(block)) continue;
      const shown = html(block);
      finished.set(block, shown);
      if (!isSaid(shown)) wrong.push(shown);
    }
  }
}).observe(document, {
  subtree: true, childList: true, attributes: true, attributeFilter: ["data-finished"],
});
"""


@pytest.fixture(scope="package")
def teller() -> Iterator[Teller]:
    with Teller(says={OTHER_QUESTION: OTHER}) as running:
        yield running


@pytest.fixture(scope="package")
def stack(teller: Teller) -> Iterator[Stack]:
    urls = {"LLM_BASE_URL": teller.base_url, "EMBED_BASE_URL": teller.base_url}
    # Nothing is asked but what a test asks.
    alone = {"WORKBENCH_READ_AHEAD": "false", "WORKBENCH_TITLES": "false"}
    with Stack(urls | alone) as stack:
        yield stack


def is_problem(line: ConsoleMessage) -> bool:
    """A broken connection is none: here it is broken on purpose."""
    return line.type == "error" and "net::ERR_" not in line.text


@pytest.fixture(autouse=True)
def _nothing_held_back(teller: Teller) -> Iterator[None]:
    yield
    teller.allowed = math.inf


OpenDevice = Callable[..., BrowserContext]


@pytest.fixture
def open_device(
    stack: Stack, chromium: Browser, logged_in: dict[str, object]
) -> Iterator[OpenDevice]:
    """Makes browsers of the same person. What they show, and their scripts, must not go wrong."""
    expect.set_options(timeout=PATIENCE)
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def device(base_url: str = stack.url) -> BrowserContext:
        context = chromium.new_context(
            base_url=base_url,
            storage_state=logged_in,  # type: ignore[arg-type]
            viewport={"width": 1280, "height": 800},
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        # "Answer now" ends a thought anywhere.
        thoughts = [THOUGHT[: end + 1] for end in range(len(THOUGHT))]
        texts = json.dumps(
            [markdown.render(text) for text in (TEXT, OTHER, TYPESET, *CALLED, *thoughts)]
        )
        context.add_init_script(f"const TEXTS = {texts};{WATCH}")
        context.on("weberror", lambda error: problems.append(str(error.error)))
        context.on("console", lambda line: problems.append(line.text) if is_problem(line) else None)
        return context

    yield device
    wrong = [
        tab.evaluate("[...wrong, ...changed()]") for context in contexts for tab in context.pages
    ]
    for context in contexts:
        context.close()
    assert problems == []
    assert all(shown == [] for shown in wrong), wrong


@pytest.fixture
def page(open_device: OpenDevice) -> Page:
    return open_device().new_page()
