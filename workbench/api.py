"""The HTTP API: one router a room, one shape for every error."""

import math
from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, AuthorizationError, HttpError, ValidationError

from apps.chat.api.router import router as chat
from apps.classifiers.api import router as classifiers
from apps.core.api import BearerKey, BrowserSession
from apps.core.errors import DomainError, ErrorPlace
from apps.core.http import error_pages
from apps.core.http.error_pages import UNAUTHORIZED
from apps.core.http.json_bodies import BodyParser
from apps.datasets.api import router as datasets
from apps.generation.api import router as generation
from apps.servers.api import router as servers

INTRODUCTION = """
OpenAI’s and Anthropic’s routes stand under [Connect a program](/servers/connect/).

Programs send an API key as `Authorization: Bearer wb_...`. You are logged in on this page, so
“Try it out” works without one.

A list has `items` and `next`. Send `next` as `after` to get the rest. An error has `code`,
`detail` and `errors`.
"""

api = NinjaAPI(
    title="Workbench API",
    version="1",
    description=INTRODUCTION,
    auth=[BearerKey(), BrowserSession()],
    parser=BodyParser(),
)
for router in (servers, chat, datasets, classifiers, generation):
    api.add_router("", router)


def _answer(
    request: HttpRequest,
    status: int,
    code: str,
    detail: str,
    errors: Sequence[ErrorPlace] = (),
) -> HttpResponse:
    body = {"code": code, "detail": detail, "errors": [*errors]}
    return api.create_response(request, body, status=status)


@api.exception_handler(DomainError)
def _domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    answer = _answer(request, error.status, error.code, str(error), error.errors)
    if error.retry_after is not None:
        answer["Retry-After"] = str(math.ceil(error.retry_after))
    return answer


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return error_pages.refuse(request, UNAUTHORIZED)


@api.exception_handler(AuthorizationError)
def _forbidden(request: HttpRequest, error: AuthorizationError) -> HttpResponse:
    return _answer(request, 403, "forbidden", "You do not have permission to do this.")


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [ErrorPlace(loc=list(e["loc"]), msg=e["msg"]) for e in error.errors]
    where = "; ".join(f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in errors[:3])
    return _answer(request, 422, "invalid", f"The request is not valid: {where}", errors)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return _answer(request, 404, "not_found", "It does not exist, or you do not have access to it.")


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, DomainError):  # ninja wraps errors of the parser
        return _domain_error(request, error.__cause__)
    return _answer(request, error.status_code, "bad_request", str(error))
