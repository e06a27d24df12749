"""From a chunk of the model server to the glyph on the screen, and what a long answer costs a page.

Chromium shows the chat page of the whole workbench; the model server is the stand-in that notes
when it sends each token (bench/paced_server.py). Three things are measured:

- *glyph*: 100 tokens a second; of each token the time from its being sent to the end of the first
  frame that shows it (a message posted while the frame is drawn comes when that is done). Both ends
  read the clock of this machine.
- *long*: 20,000 tokens in paragraphs, 500 a second; the page's CPU per 1,000 tokens, slice by
  slice, as Chromium counts it. It has to be flat: the last slice against the first full one.
- *typeset*: an answer with headings, lists, a table, two blocks of code and formulas, 100 pieces a
  second, asked twice. After every change of the page: characters of Markdown that are shown outside
  of code in a block that is finished; at the end: how far anything that was shown has moved.
- *open*: a conversation of 100 messages, opened by a browser that has nothing in its cache: from
  the start of the navigation to the moment at which what is typed stands in the field.

Run: `.venv/bin/python -m bench.chat.glyph [--rounds 3] [--only glyph]`. Nothing else should be
running. `WORKBENCH_CHROMIUM` names a Chromium if Playwright has none of its own.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.chat.stream import paced_server
from bench.jobs import verdict
from tests.stack import Stack

GLYPH_BAR_MS = 80.0
FLAT_BAR = 1.25
OPEN_BAR_MS = 1000.0
CONTEXT = 131_072
TAIL = 250
PARTS = ("glyph", "long", "typeset", "open")

# Notes when the frame was done that first showed each number of the live text.
WATCH = """
window.shownAt = [];
const channel = new MessageChannel();
let upto = -1, asked = false;
channel.port1.onmessage = () => {
  asked = false;
  const now = performance.timeOrigin + performance.now();
  for (let n = shownAt.length; n <= upto; n++) shownAt.push(now);
};
new MutationObserver(() => {
  const paragraph = document.querySelector("article[data-events] [data-text]")
    ?.lastElementChild?.lastElementChild;
  const found = /(\\d+)$/.exec(paragraph?.lastChild?.data?.slice(-12) ?? "");
  if (!found || Number(found[1]) <= upto) return;
  upto = Number(found[1]);
  if (!asked) { asked = true; requestAnimationFrame(() => channel.port2.postMessage(0)); }
}).observe(document, {subtree: true, childList: true, characterData: true});
window.upto = () => upto;
"""
# Notes what a reader should not see: marks of Markdown in finished blocks, and shifts of the
# layout.
LOOK = """
window.marks = new Set();
window.shifts = [];
const MARKS = /\\*\\*|^#{1,6} |```|\\|\\s*-{3}|\\$\\$|\\\\\\(|\\]\\(|^\\s*[-*] /m;
const look = () => {
  for (const part of document.querySelectorAll("[data-finished]")) {
    const blocks = [...part.querySelectorAll(":scope > .bundle > *")];
    for (const block of blocks.slice(0, Number(part.dataset.finished))) {
      if (block.looked) continue;
      block.looked = true;
      const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const { parentElement, data } = walker.currentNode;
        if (!parentElement.closest("code, .math-shown") && MARKS.test(data)) marks.add(data);
      }
    }
  }
};
new MutationObserver(look).observe(document, {subtree: true, childList: true});
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) shifts.push({at: shift.startTime, value: shift.value});
}).observe({type: "layout-shift", buffered: true});
// Where the last block of the answer is, before the answer ends and after.
const BLOCKS = "article.answer .prose:not(.muted) > .bundle > *";
window.placeOf = () => [...document.querySelectorAll(BLOCKS)]
  .map((block, n, [first]) => [block, first].map((one) => one.getBoundingClientRect().top))
  .map(([top, start]) => Math.round(top - start)).join(" ");
"""
TYPED = """
document.addEventListener("input", () => { window.typedAt ??= performance.now(); }, true);
"""


@dataclass
class Workbench:
    stack: Stack
    server: str
    browser: Browser
    login: Any

    def open(self, script: str) -> BrowserContext:
        context = self.browser.new_context(
            base_url=self.stack.url,
            storage_state=self.login,
            viewport={"width": 1280, "height": 800},
        )
        context.set_default_timeout(600_000)
        context.add_init_script(script)
        return context

    def begin(self, page: Page, model: str, tokens: int) -> None:
        """A conversation with a model of the stand-in, and its first answer begun."""
        page.goto("/chat/")
        headers = page.evaluate("JSON.parse(document.body.getAttribute('hx-headers'))")
        server = page.request.get("/api/v1/servers").json()["items"][0]["id"]
        body = {"server": server, "model": model, "params": {"max_tokens": tokens}}
        opened = page.request.post("/api/v1/conversations", data=body, headers=headers)
        assert opened.ok, opened.text()
        page.goto(f"/chat/{opened.json()['id']}/")
        field = page.get_by_label("Message", exact=True)
        field.fill("Count.")
        field.press("Enter")
        page.wait_for_selector(".answer-live")


def glyphs(workbench: Workbench, tokens: int) -> list[float]:
    """Milliseconds from sent to shown, of each token."""
    context = workbench.open(WATCH)
    page = context.new_page()
    workbench.begin(page, "quick", tokens)
    page.wait_for_function(
        "(n) => shownAt.length >= n - 1 || !document.querySelector('.answer-live')",
        arg=tokens,
        polling=500,
    )
    shown = page.evaluate("shownAt")
    context.close()
    sent = httpx2.get(f"{workbench.server.removesuffix('/v1')}/sent").json()
    # What came with the last frames is replaced by the finished answer before it could be noted.
    found = f"{len(shown)} shown, {len(sent)} sent, {tokens} wanted"
    assert tokens - 50 <= len(shown) <= len(sent) == tokens, found
    return [at - when * 1000 for at, when in zip(shown, sent, strict=False)]


def slices(workbench: Workbench, tokens: int, count: int) -> list[float]:
    """CPU of the page's main thread per 1,000 tokens, in milliseconds, slice by slice."""
    context = workbench.open(WATCH)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    workbench.begin(page, "rapid", tokens)
    found = []
    before = (0.0, 0)
    for number in range(count + 1):
        # Without the end, at which the finished answer is drawn.
        reached = (tokens - TAIL) * number // count
        page.wait_for_function("(n) => upto() >= n", arg=reached, polling=100)
        at = int(page.evaluate("upto()"))
        told = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        if number:
            found.append((told["TaskDuration"] - before[0]) * 1e6 / (at - before[1]))
        before = told["TaskDuration"], at
    context.close()
    return found


def end_of_typeset(workbench: Workbench) -> tuple[list[str], float, bool]:
    """Marks that were shown, the layout shift at the end, and whether blocks kept their places."""
    context = workbench.open(LOOK)
    page = context.new_page()
    workbench.begin(page, "typeset", 1000)
    page.wait_for_function("() => document.querySelector('[data-finished]')")
    before, ended = "", 0.0
    while page.locator(".answer-live").count():
        before, ended = page.evaluate("[placeOf(), performance.now()]")
    page.wait_for_timeout(1000)
    marks = page.evaluate("[...marks]")
    shift = sum(one["value"] for one in page.evaluate("shifts") if one["at"] > ended)
    return marks, shift, page.evaluate("placeOf()").startswith(before.rsplit(" ", 1)[0])


def openings(workbench: Workbench, rounds: int) -> list[float]:
    """Milliseconds until what is typed stands in the field, each in a browser without a cache."""
    text = "Number {}. " + "Some **words** to fill a line, and `code`. " * 12
    said = {
        f"{n}": {
            "parentId": f"{n - 1}" if n else None,
            "role": ("user", "assistant")[n % 2],
            "content": text.format(n),
        }
        for n in range(100)
    }
    chat = {"title": "A hundred", "history": {"messages": said, "currentId": "99"}}
    context = workbench.open("")
    page = context.new_page()
    page.goto("/chat/import/")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chats.json"
        file.write_text(json.dumps([{"id": "hundred", "chat": chat}]))
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Import", exact=True).click()
        page.get_by_role("link", name="A hundred", exact=True).click()
        page.wait_for_selector("article")
    address = page.url
    context.close()
    found = []
    for _ in range(rounds):
        context = workbench.open(TYPED)
        page = context.new_page()
        page.goto(address, wait_until="commit")
        page.locator("[data-composer] textarea").press("a")
        found.append(float(page.evaluate("typedAt")))
        context.close()
    return found


def report_glyphs(workbench: Workbench, tokens: int, rounds: int) -> None:
    print(f"\nglyph: {tokens:,} tokens at 100 a second, ms from sent to shown")
    every: list[float] = []
    for _ in range(rounds):
        found = glyphs(workbench, tokens)
        every += found
        p50, p95, most = statistics.median(found), p(found, 95), max(found)
        print(f"  median {p50:6.1f}   p95 {p95:6.1f}   most {most:6.1f}", flush=True)
    verdict("p95 of all, ms", p(every, 95), GLYPH_BAR_MS, at_most=True)


def report_slices(workbench: Workbench, tokens: int, rounds: int) -> None:
    print(f"\nlong: {tokens:,} tokens at 500 a second, ms of the page's CPU per 1,000 tokens")
    ratios = []
    for _ in range(rounds):
        found = slices(workbench, tokens, 10)
        ratios.append(found[-1] / found[1])  # the first has the page's own beginning in it
        print("  " + " ".join(f"{cpu:6.0f}" for cpu in found), flush=True)
    verdict("last / second slice", statistics.median(ratios), FLAT_BAR, at_most=True)


def report_typeset(workbench: Workbench, rounds: int) -> None:
    print("\ntypeset: an answer with everything, 100 pieces a second")
    for _ in range(rounds):
        marks, shift, stayed = end_of_typeset(workbench)
        print(
            f"  marks in finished blocks {len(marks)}   layout shift at the end {shift:.4f}   "
            f"blocks kept their places: {stayed}",
            flush=True,
        )
        for mark in marks:
            print(f"    {mark!r}")


def report_openings(workbench: Workbench, rounds: int) -> None:
    found = openings(workbench, max(5, rounds))
    print("\nopen: a conversation of 100 messages, ms until typing works")
    print("  " + " ".join(f"{ms:.0f}" for ms in found))
    verdict("median, ms", statistics.median(found), OPEN_BAR_MS, at_most=True)


def p(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--glyph-tokens", type=int, default=1000)
    parser.add_argument("--long-tokens", type=int, default=20_000)
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args()
    parts = options.only or PARTS
    with paced_server(CONTEXT) as url, sync_playwright() as playwright:
        settings = {"LLM_BASE_URL": url, "EMBED_BASE_URL": url, "WORKBENCH_READ_AHEAD": "false"}
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("WORKBENCH_CHROMIUM") or None,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        with Stack(settings | {"WORKBENCH_TITLES": "false"}) as stack:
            context = browser.new_context()
            page = context.new_page()
            page.goto(stack.login_url)
            page.wait_for_url(f"{stack.url}/")  # the form of the link sends itself
            workbench = Workbench(stack, url, browser, context.storage_state())
            context.close()
            if "glyph" in parts:
                report_glyphs(workbench, options.glyph_tokens, options.rounds)
            if "long" in parts:
                report_slices(workbench, options.long_tokens, options.rounds)
            if "typeset" in parts:
                report_typeset(workbench, options.rounds)
            if "open" in parts:
                report_openings(workbench, options.rounds)
        browser.close()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
