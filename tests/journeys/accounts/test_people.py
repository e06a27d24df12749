"""A second person: invited on the page, by a link that works once. Both chat."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import PATIENCE, Login, arrive, is_problem
from tests.stack import Stack

PASSWORD = "correct horse battery"


def ask(page: Page, question: str) -> None:
    page.goto("/chat/")
    page.get_by_label("Message", exact=True).fill(question)
    page.get_by_label("Message", exact=True).press("Enter")
    arrive(page, r"/chat/\d+/")
    expect(page.get_by_label("Answer", exact=True)).to_contain_text(re.compile(r"\d+ tokens?"))


def test_an_invited_person_chats_and_sees_only_what_is_theirs(
    page: Page, stack: Stack, chromium: Browser
) -> None:
    page.goto("/settings/")
    page.get_by_role("link", name="People").click()
    page.get_by_role("button", name="Invite").click()
    page.get_by_role("dialog").get_by_label("Name").fill("dana")
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_test_id("link").inner_text()

    context = chromium.new_context(base_url=stack.url)
    context.set_default_timeout(PATIENCE)
    dana = context.new_page()
    problems: list[str] = []
    dana.on("console", lambda line: problems.append(line.text) if is_problem(line) else None)
    dana.goto(link)
    dana.get_by_label("New password", exact=True).fill(PASSWORD)
    dana.get_by_label("New password confirmation").fill(PASSWORD)
    dana.get_by_role("button", name="Set password and log in").click()
    arrive(dana, r"//[^/]+/$")
    buttons = dana.locator(".door button").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().top)"
    )
    assert len(buttons) == 3
    assert max(buttons) - min(buttons) < 1, "the buttons of the doors stand on one line"

    wide = dana.viewport_size
    assert wide is not None
    for path in ("/chat/", "/generate/"):
        dana.goto(path)
        begin = dana.locator(".list-begin")
        expect(begin).to_be_hidden()  # the page beside the list has such a button
        dana.set_viewport_size({"width": 390, "height": 844})
        expect(begin).to_be_visible()
        dana.set_viewport_size(wide)

    ask(page, "What is a slot of the model server?")
    ask(dana, "How do I label my tickets?")
    for who, other in ((page, "tickets"), (dana, "model server")):
        who.goto("/chat/")
        expect(who.locator("body")).not_to_contain_text(other)

    dana.goto("/settings/")
    expect(dana.get_by_text("Member", exact=True)).to_be_visible()
    expect(dana.get_by_role("link", name="People")).to_have_count(0)
    page.goto("/settings/people/")
    page.locator("summary", has_text="Manage dana").click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_text("dana can no longer log in.")).to_be_visible()
    dana.goto("/chat/")
    arrive(dana, r"/login/")
    assert problems == []
    context.close()


def test_a_revoked_key_comes_back_and_a_theme_stays(page: Page) -> None:
    page.goto("/settings/#keys")
    page.get_by_role("button", name="Create key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key name").fill("laptop")
    dialog.get_by_label("Access").select_option("Read only")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("status").get_by_text("Key “laptop” revoked")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke laptop")).to_have_count(0)
    page.keyboard.press("Alt+z")
    expect(page.get_by_role("button", name="Revoke laptop")).to_be_visible()

    page.get_by_label("Dark").check()
    expect(page.locator("#appearance-saved")).to_have_text("Saved")
    page.goto("/generate/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/settings/")
    page.get_by_label("System").check()
    expect(page.locator("#appearance-saved")).to_have_text("Saved")


def test_times_are_those_of_the_reader(stack: Stack, chromium: Browser, logged_in: Login) -> None:
    tokyo = chromium.new_context(
        base_url=stack.url,
        storage_state=logged_in,  # type: ignore[arg-type]
        timezone_id="Asia/Tokyo",
    )
    page = tokyo.new_page()
    page.goto("/settings/")
    time = page.locator("#people time").first
    moment = datetime.fromisoformat(time.get_attribute("datetime") or "")
    local = moment.astimezone(ZoneInfo("Asia/Tokyo"))
    expect(time).to_have_text(f"{local.day} {local:%b %Y, %H:%M}")
    tokyo.close()
