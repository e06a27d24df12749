"""The parts that several pages share, as tags built into every template (settings.TEMPLATES)."""

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# The colour of a status, whatever has it: a job, a row, a run, a tool call.
STATUS_TONES = {
    "accepted": "good",
    "done": "good",
    "ready": "good",
    "running": "accent",
    "embedding": "accent",
    "fitting": "accent",
    "queued": "accent",
    "importing": "accent",
    "paused": "warn",
    "cancelled": "warn",
    "rejected": "warn",
    "waiting": "warn",
    "failed": "bad",
}


@register.simple_tag
def icon(name: str, sheet: str = "icons", label: str = "", extra: str = "") -> SafeString:
    """{% icon "trash" %}: a symbol of static/img/<sheet>.svg, hidden from screen readers.

    With a label it is read as an image of that name. `extra` is one more CSS class.
    """
    return format_html(
        '<svg class="icon{}" {}><use href="{}#{}"/></svg>',
        f" {extra}" if extra else "",
        format_html('role="img" aria-label="{}"', label)
        if label
        else SafeString('aria-hidden="true"'),
        static(f"img/{sheet}.svg"),
        name,
    )


@register.simple_tag
def badge(text: object, tone: str = "") -> SafeString:
    """{% badge "Live" tone="good" %}; the tones are good, warn, bad and accent."""
    return format_html('<span class="badge{}">{}</span>', f" badge-{tone}" if tone else "", text)


@register.simple_tag
def status_badge(status: str | None, label: str = "", accepted: int | None = None) -> SafeString:
    """{% status_badge run.status %}: the status as a word, in the colour that it has everywhere.

    A label replaces the word. A job that is done with 0 accepted rows gets a warning's colour.
    """
    if not status:
        return badge(label or "Not trained")
    tone = "warn" if status == "done" and accepted == 0 else STATUS_TONES.get(status, "")
    return badge(label or status.capitalize(), tone)


@register.simple_tag
def stat(
    label: str, value: object, note: str = "", dot: str = "", suffix: object = ""
) -> SafeString:
    """{% stat "Macro F1" share|percent note="mean over labels" %}, inside <dl class="stats">.

    A dot of that class comes before the label, a suffix (the number of a version) after it.
    """
    context = {"label": f"{label} {suffix}".strip(), "value": value, "note": note, "dot": dot}
    return render_to_string("components/stat.html", context)


@register.simple_block_tag
def notedstat(content: str, label: str, value: object) -> SafeString:
    """{% notedstat "Accuracy" share|percent %}a note with values{% endnotedstat %}."""
    return stat(label, value, note=SafeString(content.strip()))  # its parts are escaped already


@register.simple_tag
def tab(label: str, url_name: str, *args: object, name: str, current: str) -> SafeString:
    """{% tab "Map" "classifiers:map" pk name="map" current=tab %}, inside <nav class="tabs">."""
    here = SafeString(' aria-current="page"') if name == current else ""
    return format_html('<a href="{}"{}>{}</a>', reverse(url_name, args=args), here, label)


@register.simple_block_tag
def emptystate(content: str, title: str = "") -> SafeString:
    """{% emptystate title="No jobs yet" %}…{% endemptystate %}: a list that is empty, and why."""
    return render_to_string("components/empty_state.html", {"title": title, "content": content})
