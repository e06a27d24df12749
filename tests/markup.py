"""HTML as tests compare it: the line breaks of a template are not part of a page."""

import re


def one_line(html: str) -> str:
    """Collapse whitespace as a browser does, and drop it next to tags."""
    collapsed = " ".join(html.split())
    return re.sub(r" ?(</?[a-zA-Z][^>]*>) ?", r"\1", collapsed)


def visible_text(html: str) -> str:
    """Return the text without its tags, words separated by one space."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())
