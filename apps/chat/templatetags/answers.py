"""The text of an answer as HTML."""

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from apps.chat.knowledge import citations
from apps.chat.knowledge.passages import Findings, Source
from apps.chat.models import Message
from apps.chat.templatetags import json_tree
from apps.core.text import markdown

register = template.Library()


@register.filter
def answer(text: str) -> SafeString:
    """Render a tree if the whole answer is JSON, else Markdown. Both are escaped."""
    value = json_tree.parse(text)
    if value is not None:
        return mark_safe(json_tree.render(value))  # noqa: S308 - it escapes all it is given
    return mark_safe(markdown.render(text))  # noqa: S308 - the sanitiser has the last word there


@register.filter
def cite(html: SafeString, message: Message) -> SafeString:
    """Link the numbers in square brackets that are sources of an answer."""
    if not message.passages:
        return html
    sources = Findings.from_json(message.passages).sources
    links = {source.number: (source_address(source), source.place) for source in sources}
    return mark_safe(citations.link(html, links))  # noqa: S308 - addresses and titles are escaped


@register.filter
def source_address(source: Source) -> str:
    """Return the address of a passage in its document."""
    return f"{reverse('chat:document', args=[source.document])}#passage-{source.position}"


@register.filter
def search_error(message: Message) -> str:
    """Return why the documents were not searched for an answer; "" if they were."""
    return Findings.from_json(message.passages).error


@register.filter
def cited_sources(message: Message) -> list[Source]:
    """Return the sources that an answer cites, in the order of their numbers."""
    cited = citations.cited_numbers(message.content) if message.passages else set()
    sources = Findings.from_json(message.passages).sources
    return sorted((one for one in sources if one.number in cited), key=lambda one: one.number)
