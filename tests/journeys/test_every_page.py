"""Every page of every room, with something on it: what axe-core finds, wide and narrow."""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.journeys.conftest import Login, arrive, in_browser, tab
from tests.stack import Stack

pytestmark = pytest.mark.timeout(400)

ROOT = Path(__file__).parent.parent
AXE = ROOT / "vendor" / "axe" / "axe-core-4.14.1.min.js"
QUESTIONS = ROOT.parent / "bench" / "data" / "banking77_train.csv"
LABELS = ("card_arrival", "lost_or_stolen_card", "exchange_rate")
PATIENCE = 90_000
BUDGET_KIB = 200
# With something on them; the numbers are put in.
FIRST_PAGES = (
    "/chat/",
    "/datasets/",
    "/datasets/{datasets}/",
    "/classify/",
    "/classify/{classify}/",
    "/classify/{classify}/thresholds/",
    "/classify/{classify}/map/",
    "/generate/",
    "/generate/new/",
    "/generate/new/?recipe=chat",
    "/generate/{generate}/",
    "/servers/",
    "/servers/plan/",
    "/servers/connect/",
    "/servers/{servers}/measure/",
    "/tools/",
    "/settings/",
)

RUN = """async (rules) => {
  for (const animation of document.getAnimations()) animation.finish();
  const only = rules ? {runOnly: rules} : {};
  const {violations} = await axe.run(document, {resultTypes: ["violations"], ...only});
  const said = (node) => `${node.html.slice(0, 160)} (${node.failureSummary.slice(0, 200)})`;
  return violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(said).join(" | ")}`);
}"""

WIDE, NARROW, HEIGHT = 1440, 390, 900
NARROW_RULES = ["color-contrast", "scrollable-region-focusable", "target-size", "aria-hidden-focus"]
# In dark alone what depends on colours; narrow without what the width does not change.
LOOKS: tuple[tuple[int, Literal["light", "dark"], list[str] | None], ...] = (
    (WIDE, "light", None),
    (WIDE, "dark", ["color-contrast"]),
    (NARROW, "dark", NARROW_RULES),
    (NARROW, "light", ["color-contrast"]),
)

# Colours change at once: one that is on its way from light to dark is neither.
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, ::before, ::after { transition: none !important; }");
  document.adoptedStyleSheets.push(sheet);
}"""

TEXT = """So $x^2$:

```python
x = 1  # tea
```

| a | b |
|---|---|
| 1 | [c](https://x.org) |

> quoted"""


def messages(count: int) -> dict[str, Any]:
    return {
        f"{n}": {
            "parentId": f"{n - 1}" if n else None,
            "role": ("user", "assistant")[n % 2],
            "content": f"Number {n}. {TEXT if n % 2 else 'And then?'}",
        }
        for n in range(count)
    }


def import_chat(page: Page, tmp_path: Path, title: str, count: int) -> str:
    """The address of a conversation of so many messages."""
    file = tmp_path / "chats.json"
    chat = {"title": title, "history": {"messages": messages(count), "currentId": f"{count - 1}"}}
    file.write_text(json.dumps([{"id": title, "chat": chat}]))
    page.goto("/chat/import/")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("link", name=title, exact=True).click()
    arrive(page, r"/chat/\d+/")
    return page.url


def write_questions(path: Path) -> None:
    kept = dict.fromkeys(LABELS, 0)
    with QUESTIONS.open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label"])
        writer.writerow(["", "card_arrival"])
        for row in csv.DictReader(source):
            if kept.get(row["label"], 20) < 20:
                kept[row["label"]] += 1
                writer.writerow([row["text"], row["label"]])


@pytest.fixture(scope="module")
def rooms(
    stack: Stack, chromium: Browser, logged_in: Login, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], str]:
    folder = tmp_path_factory.mktemp("rooms")
    questions = folder / "questions.csv"
    write_questions(questions)
    with tab(stack, chromium, logged_in) as page:
        return fill_the_rooms(page, folder, questions)


def number(page: Page) -> str:
    found = re.search(r"/(\d+)/", page.url)
    assert found is not None
    return found[1]


def fill_the_rooms(page: Page, tmp_path: Path, questions: Path) -> dict[tuple[str, str], str]:
    """Something in every room; by room and the name in a pattern, what to put there."""
    real: dict[tuple[str, str], str] = {}
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    page.get_by_role("button", name="Import rows").click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    real["datasets", "pk"] = number(page)
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    real["datasets", "uploads"] = page.url.rstrip("/").rpartition("/")[2]

    recipe = {"prompt": "Write a review of a kettle.", "params": {"max_tokens": 30}}
    job = in_browser(
        page.context, "post", "/api/v1/jobs", {"name": "Kettles", "rows": 8, "recipe": recipe}
    )
    made = {"name": "Bank", "dataset": int(real["datasets", "pk"])}
    classifier = in_browser(page.context, "post", "/api/v1/classifiers", made)
    real["chat", "pk"] = (
        import_chat(page, tmp_path, "Some Markdown", 4).rstrip("/").rpartition("/")[2]
    )
    page.get_by_label("Message", exact=True).fill("What is the prompt cache?")
    page.keyboard.press("Enter")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(3, timeout=PATIENCE)
    page.locator("[data-menu] > summary").click()
    page.get_by_role("button", name="Share a read-only copy").click()
    expect(page).to_have_url(re.compile("/chat/shared/"))
    real["chat", "token"] = page.url.rstrip("/").rpartition("/")[2]
    page.goto(f"/classify/{classifier['id']}/")
    expect(page.get_by_role("main")).to_contain_text("held-out rows", timeout=PATIENCE)
    page.goto(f"/generate/{job['id']}/")
    expect(page.locator("#job-tag")).to_have_text("Done", timeout=PATIENCE)
    page.goto("/tools/")
    shared = page.get_by_role("region", name="Shared")
    shared.get_by_label("Name").fill("Kettle")
    shared.get_by_label("Address").fill("http://127.0.0.1:9/mcp")
    shared.get_by_role("button", name="Add tool server").click()
    page.get_by_role("link", name="Edit Kettle").click()
    arrive(page, r"/tools/\d+/")
    real["tools", "pk"] = number(page)
    servers = in_browser(page.context, "get", "/api/v1/servers")
    real["classify", "pk"], real["generate", "pk"] = str(classifier["id"]), str(job["id"])
    real["servers", "pk"] = str(servers["items"][0]["id"])
    real["generate", "index"] = "0"
    real["classify", "number"] = real["datasets", "index"] = "1"
    return real


def addresses(real: dict[tuple[str, str], str]) -> list[str]:
    """Of every pattern outside the API, with what there is; without it, of none."""
    found = []
    for path in patterns(get_resolver()):
        room = path.split("/")[1]

        def put(match: re.Match[str], room: str = room, path: str = path) -> str:
            name = "uploads" if f"/{match[1]}" in path and "uploads/" in path else match[2]
            return real.get((room, name), "?")

        address = re.sub(r"<(?:(\w+):)?(\w+)>", put, path)
        if "?" not in address and room not in {"api", "logout"}:
            found.append(address)
    return sorted(found)


def patterns(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, path)
        elif isinstance(entry, URLPattern):
            yield path


def is_a_page(page: Page, address: str) -> bool:
    answer = page.request.get(address, max_redirects=0)
    html = answer.headers.get("content-type", "").startswith("text/html")
    return answer.status == 200 and html and "<html" in answer.text()


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


def test_every_page_passes_axe_wide_and_narrow_in_light_and_dark(
    page: Page, rooms: dict[tuple[str, str], str]
) -> None:
    real = rooms
    pages = [address for address in addresses(real) if is_a_page(page, address)]
    assert len(pages) > 25
    said: list[str] = []
    for address in pages:
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(address)
        said += violations(page, address)
    page.goto(f"/chat/{real['chat', 'pk']}/")
    page.keyboard.press("Alt+m")
    expect(page.get_by_label("Temperature")).to_be_visible()
    open_all = "all => all.forEach((one) => { one.open = true; })"
    page.locator("#settings details").evaluate_all(open_all)
    said += violations(page, "the panel")
    assert not said, "\n".join(said)


def first_load_kib(context: BrowserContext, url: str, ready: Callable[[Page], None]) -> float:
    """Return the KiB of script and style, compressed, that a first visit of a page loads."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    sizes: dict[str, int] = {}
    session.on("Network.responseReceived", lambda e: kinds.update({e["requestId"]: e["type"]}))
    session.on(
        "Network.loadingFinished",
        lambda e: sizes.update({e["requestId"]: int(e["encodedDataLength"])}),
    )
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    page.goto(url)
    ready(page)
    page.close()
    loaded = [size for key, size in sizes.items() if kinds.get(key) in {"Script", "Stylesheet"}]
    assert len(loaded) > 2
    return round(sum(loaded) / 1024, 1)


def can_be_gone_on_with(page: Page) -> None:
    page.get_by_label("Message", exact=True).press_sequentially("And now")
    expect(page.get_by_label("Message", exact=True)).to_have_value("And now")
    expect(page.locator("article").last).to_be_in_viewport()
    expect(page.locator("article .katex").last).to_be_visible()


def is_there(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for chart in page.locator("[data-chart]:visible").all():
        expect(chart.locator("canvas")).to_be_visible()


def test_first_load_stays_within_its_budget(
    page: Page, tmp_path: Path, rooms: dict[tuple[str, str], str]
) -> None:
    """At most 200 KiB of script and style, and a long conversation can be gone on with at once.

    `-rP` prints what it is.
    """
    long = import_chat(page, tmp_path, "A hundred", 100)
    loads = {"100 messages": first_load_kib(page.context, long, can_be_gone_on_with)}
    numbers = {room: number for (room, name), number in rooms.items() if name == "pk"}
    for pattern in FIRST_PAGES:
        address = pattern.format(**numbers)
        loads[address] = first_load_kib(page.context, address, is_there)
    for what, load in loads.items():
        sys.stdout.write(f"{what}: {load} KiB\n")
    assert max(loads.values()) <= BUDGET_KIB
