from html.parser import HTMLParser

import pytest

from apps.core.text.html_changes import CHUNK, Change, Update, change, update
from apps.core.text.live_markdown import CHUNK_CHARACTERS, LiveMarkdown
from tests.core.text.test_live_markdown import SAMPLES


class Node:
    """An element of a page, or a text."""

    def __init__(self, name: str, attributes: list[tuple[str, str | None]] | None = None) -> None:
        self.name, self.attributes = name, attributes
        self.text = ""
        self.children: list[Node] = []

    def shown(self) -> object:
        return (self.name, self.attributes, self.text, [child.shown() for child in self.children])


class Reader(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.open = [Node("page")]
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, attrs)
        self.open[-1].children.append(node)
        if tag not in {"br", "hr", "input"}:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        last = self.open[-1].children[-1:]
        if not last or last[0].name != "text":
            self.open[-1].children.append(Node("text"))
        self.open[-1].children[-1].text += data


def read(html: str) -> list[Node]:
    return Reader(html).open[0].children


def apply(blocks: list[Node], told: Update) -> None:
    """As the page does."""
    del blocks[told.at + (told.inside is not None) :]
    if told.inside is not None:
        element = blocks[told.at]
        for place in told.inside.path:
            del element.children[place + 1 :]
            element = element.children[place]
        del element.children[told.inside.keep :]
        if told.inside.text:
            element.children[-1].text += told.inside.text
        element.children += read(told.inside.html)
    for html in told.blocks:
        (block,) = read(html)
        blocks.append(block)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("size", [1, 7])
def test_a_page_that_follows_the_changes_shows_the_text(name: str, size: int) -> None:
    live, page, sent, finished = LiveMarkdown(), list[Node](), list[str](), 0
    for at in range(0, len(SAMPLES[name]), size):
        live.add(SAMPLES[name][at : at + size])
        live.render()
        new = [*live.blocks[finished:], *live.open]
        if told := update(sent, new, finished):
            apply(page, told)
        finished, sent = len(live.blocks), list(live.open)
        wanted = read("".join([*live.blocks, *live.open]))
        assert [node.shown() for node in page] == [node.shown() for node in wanted]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("<p>a</p>", "<p>a b</p>", Change((), 1, " b", "")),
        ("<p>a &amp;</p>", "<p>a &amp; b</p>", Change((), 1, " b", "")),
        ("<p>a</p>", "<p>a<br>b</p>", Change((), 1, "", "<br>b")),
        ("<p>a <b>c</b></p>", "<p>a <b>cd</b></p>", Change((1,), 1, "d", "")),
        ("<ul><li>a</li></ul>", "<ul><li>a</li><li>b</li></ul>", Change((), 1, "", "<li>b</li>")),
        ("<p>a</p>", "<h2>a</h2>", None),
        ('<p title="a>b">a</p>', '<p title="a>b">ab</p>', Change((), 1, "b", "")),
    ],
)  # fmt: skip
def test_a_change_begins_where_the_texts_differ(old: str, new: str, found: Change | None) -> None:
    assert change(old, new) == found


def test_only_the_end_of_long_code_is_sent() -> None:
    live, page, sent = LiveMarkdown(), list[Node](), list[str]()
    live.add("```python\n")
    for number in range(700):
        live.add(f"x{number} = 1\n")
        live.render()
        told = update(sent, live.open)
        assert told is not None
        assert number == 0 or len(str(told)) < 2 * CHUNK_CHARACTERS * 12
        apply(page, told)
        sent = list(live.open)
    assert sent[0].count(CHUNK) > 2
    assert [node.shown() for node in page] == [node.shown() for node in read(sent[0])]


def test_blocks_that_stay_are_not_sent_again() -> None:
    assert update(["<p>a</p>"], ["<p>a</p>"]) is None
    assert update(["<p>a</p>"], ["<p>a</p>", "<hr>"], 3) == Update(4, None, ["<hr>"])
    assert update(["<p>a</p>", "<hr>"], ["<p>a</p>"]) == Update(1, None, [])
