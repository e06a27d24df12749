"""The text of an answer as HTML."""

from collections.abc import Sequence

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from apps.chat.knowledge import citations, cited
from apps.chat.knowledge.citations import cited_numbers
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
    links = {
        source.number: citations.SourceLink(
            source_address(source), panel_address(source, message), source.place
        )
        for source in sources
    }
    return mark_safe(citations.link(html, links))  # noqa: S308 - addresses and titles are escaped


@register.filter
def source_address(source: Source) -> str:
    """Return the address of a passage in its document."""
    return f"{reverse('chat:document', args=[source.document])}#passage-{source.position}"


@register.filter
def panel_address(source: Source, answer: Message) -> str:
    """Return the address of a source of an answer for the side panel."""
    return reverse("chat:source", args=[answer.pk, source.number])


@register.filter
def search_error(message: Message) -> str:
    """Return why the documents were not searched for an answer; "" if they were."""
    return Findings.from_json(message.passages).error


@register.filter
def cited_sources(message: Message) -> list[Source]:
    """Return the sources that an answer cites, in the order of their numbers."""
    return cited.sources_of(message)


@register.filter
def found_sources(message: Message) -> list[Source]:
    """Return what was found for the question of an answer; [] if all of it is cited."""
    found = cited.found_of(message) if message.passages else []
    return [] if {one.number for one in found} <= cited_numbers(message.content) else found


@register.filter
def document_count(sources: Sequence[Source]) -> int:
    """Return how many documents some sources are from."""
    return len({source.document for source in sources})
