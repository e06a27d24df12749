"""Addresses in text: which become links, where they end, and that no text is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from apps.core.text import links


@pytest.fixture(scope="module")
def parser() -> MarkdownIt:
    made = MarkdownIt("commonmark")
    links.use(made)
    return made


def hrefs(html: str) -> list[str]:
    return re.findall(r'<a href="([^"]*)"', html)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See https://example.org.", "https://example.org"),
        ("(https://example.org/a_b_c)", "https://example.org/a_b_c"),
        ("https://example.org/a?b=1&c=2", "https://example.org/a?b=1&amp;c=2"),
        ("example.org is fine", "http://example.org"),
        ("write to someone@example.org!", "mailto:someone@example.org"),
        ("https://example.org/*not*bold", "https://example.org/*not*bold"),
        ("HTTP://EXAMPLE.ORG/", "HTTP://EXAMPLE.ORG/"),
    ],
)
def test_an_address_is_a_link(parser: MarkdownIt, text: str, address: str) -> None:
    assert hrefs(parser.render(text)) == [address]


@pytest.mark.parametrize(
    "text",
    [
        "no address",
        "1.5 and 3.14",
        "javascript://alert(1)",
        r"http\://example.org",
        "`https://example.org`",
        "end.Start",
        "://",
    ],
)
def test_other_text_is_not(parser: MarkdownIt, text: str) -> None:
    assert hrefs(parser.render(text)) == []


def test_a_link_inside_a_link_is_not_made(parser: MarkdownIt) -> None:
    html = parser.render("[https://inner.example](https://outer.example)")
    assert hrefs(html) == ["https://outer.example"]


def test_several_in_one_paragraph(parser: MarkdownIt) -> None:
    html = parser.render("a.org, https://b.example and c@d.org")
    assert hrefs(html) == ["http://a.org", "https://b.example", "mailto:c@d.org"]


def test_a_word_beyond_the_limit_is_one_address_or_none(parser: MarkdownIt) -> None:
    path = "a" * links.WORD_CHARACTERS
    assert hrefs(parser.render(f"https://example.org/{path}.")) == [f"https://example.org/{path}"]
    assert hrefs(parser.render(f"example.org/{path}")) == []
    far = "b" * links.ADDRESS_CHARACTERS
    assert hrefs(parser.render(f"https://example.org/{far}")) == []


@given(st.text(st.sampled_from("ab .:/@*_htps\\<>[]()`1"), max_size=80))
def test_no_text_is_lost(text: str) -> None:
    """With and without links the same letters are shown."""
    plain = MarkdownIt("commonmark")
    linking = MarkdownIt("commonmark")
    links.use(linking)

    def shown(parser: MarkdownIt) -> str:
        return re.sub(r"[^ab1@.]", "", re.sub(r"<[^>]*>|&\w+;", "", parser.render(text)))

    assert len(shown(linking)) >= len(shown(plain)) or "`" in text or "[" in text
