"""Middleware of every response: login required for pages, content security policy, refusals.

The API has its own guard, which answers programs in their language.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from csp.constants import HEADER
from csp.utils import build_policy
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from apps.core.api import BearerKey
from apps.core.http import error_pages
from apps.core.http.error_pages import UNAUTHORIZED, Refusal

logger = logging.getLogger(__name__)


# What no page here asks for. The clipboard is not in it: buttons copy.
NO_DEVICES = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"


class ContentSecurityPolicy(MiddlewareMixin):
    """The policy of the settings, for every response alike; and that nothing is kept of it.

    The library's own middleware writes it anew for each of them, and once more to report.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault(HEADER, _policy())
        response.headers.setdefault("Permissions-Policy", NO_DEVICES)
        # What a person read is not left behind in a browser that others use, nor in a proxy.
        response.headers.setdefault("Cache-Control", "no-store")
        return response


@cache
def _policy() -> str:
    return str(build_policy())


class Refusals(MiddlewareMixin):
    """Answers errors of views that mean a limit, a full disk or a busy database.

    And for programs every other error, too, in the promised shape.
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        refusal = error_pages.refusal_for(error)
        if refusal is None:
            return None
        if refusal.status >= 500:
            logger.error("%s: %s", request.path, refusal.code, exc_info=error)
        return error_pages.refuse(request, refusal)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if (
            response.status_code < 400
            or not error_pages.is_api_request(request)
            or response.streaming
        ):
            return response
        if response.headers.get("Content-Type", "").startswith("application/json"):
            return response
        refusal = Refusal(
            response.status_code,
            response.reason_phrase.lower().replace(" ", "_"),
            f"{response.reason_phrase}: {request.method} {request.path}.",
        )
        shaped = error_pages.refuse(request, refusal)
        for name, value in response.headers.items():
            if name not in {"Content-Type", "Content-Length"}:
                shaped.headers.setdefault(name, value)
        return shaped


class LoginRequired(LoginRequiredMiddleware):
    """Every page needs a login unless its view says `login_not_required`.

    Routes of the API are left to NinjaAPI(auth=...), which is global as well: here a program with a
    valid key would be sent to the login page.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is not None and match.namespace == "openai":
            return None
        if match is not None and match.namespace == "api-1":
            describes = match.url_name in {"openapi-view", "openapi-json"}
            return (
                self._described(request, view_func, view_args, view_kwargs) if describes else None
            )
        answer = super().process_view(request, view_func, view_args, view_kwargs)
        if answer is not None and request.headers.get("HX-Request"):
            # A login page cannot be shown inside a page: htmx is told to go there instead.
            return HttpResponse(status=401, headers={"HX-Redirect": reverse("core:login")})
        return answer

    def _described(self, request: HttpRequest, *view: Any) -> HttpResponseBase | None:
        """Let programs with a key read the API's description. People are sent to log in."""
        if request.user.is_authenticated or BearerKey()(request) is not None:
            return None
        if "text/html" in request.headers.get("Accept", ""):
            return super().process_view(request, *view)
        return error_pages.refuse(request, UNAUTHORIZED)
