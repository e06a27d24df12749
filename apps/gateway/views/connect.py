"""The page “Connect a program”."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.gateway.program_settings import KEY, program_texts
from apps.servers.models import Use
from apps.servers.services import NoServer, default_target

NO_MODEL = "MODEL"


@require_safe
def connect(request: HttpRequest) -> HttpResponse:
    origin = settings.PUBLIC_ORIGIN or f"{request.scheme}://{request.get_host()}"
    model = _default_model()
    context = {
        "address": f"{origin}/v1",
        "key": KEY,
        "model": model,
        "texts": program_texts(origin, model or NO_MODEL),
    }
    return render(request, "gateway/connect.html", context)


def _default_model() -> str:
    """Return the name of the model that chats get; "" where none is known."""
    try:
        target = default_target(Use.CHAT)
    except NoServer:
        return ""
    return target.server.model_id(target.model) or next(iter(target.server.model_ids), "")
