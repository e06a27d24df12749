"""A notice on pages that embed texts, while another server does so than usual."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.servers.fallbacks import fallback_notice
from apps.servers.models import Server, Use

register = template.Library()


@register.simple_tag
def embeddings_fallback_notice(server: Server | None = None) -> SafeString:
    """A paragraph while the fallback embeds for `server`, or for the default; else nothing."""
    notice = fallback_notice(Use.EMBEDDINGS, server)
    return format_html('<p class="notice notice-warn">{}</p>', notice) if notice else SafeString()
