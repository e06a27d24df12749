"""Markdown that a model or a person wrote, as HTML that is safe to show.

Raw HTML is never passed through, images of other sites become links (an image address can carry
what was said in the conversation to a stranger), and the sanitiser has the last word.
"""

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}}


def _image_as_link(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    address = nh3.clean_text(str(token.attrGet("src") or ""))
    name = nh3.clean_text(token.content or str(token.attrGet("src") or ""))
    return f'<a href="{address}">{name}</a>'


_parser = MarkdownIt("commonmark", {"html": False, "linkify": True}).enable(
    ["table", "strikethrough", "linkify"]
)
_parser.add_render_rule("image", _image_as_link)


def render(text: str) -> str:
    """Safe HTML. Linear in the length of the text."""
    return nh3.clean(
        _parser.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
