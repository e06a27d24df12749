"""The text of an answer as HTML."""

from django import template
from django.utils.safestring import SafeString, mark_safe

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
