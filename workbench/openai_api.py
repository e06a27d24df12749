"""The routes of OpenAI's API that the workbench answers itself, with errors in its shape."""

import math

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from apps.core.api import BearerKey
from apps.core.errors import DomainError
from apps.core.http.json_bodies import BodyParser
from apps.core.http.openai_errors import openai_error
from apps.gateway.api import router

api = NinjaAPI(
    title="Files and batches of programs",
    urls_namespace="openai",
    auth=BearerKey(),
    parser=BodyParser(),
    docs_url=None,
    openapi_url=None,
)
api.add_router("", router)


def _answer(
    request: HttpRequest, status: int, code: str, detail: str, param: str | None = None
) -> HttpResponse:
    body = openai_error(status, code, detail, param=param)
    return api.create_response(request, body, status=status)


@api.exception_handler(DomainError)
def _domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    answer = _answer(request, error.status, error.code, str(error))
    if error.retry_after is not None:
        answer["Retry-After"] = str(math.ceil(error.retry_after))
    return answer


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    detail = "Send a valid key of the workbench as `Authorization: Bearer wb_...`."
    return _answer(request, 401, "invalid_api_key", detail)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    places = [(".".join(map(str, e["loc"][2:] or e["loc"][1:])), e["msg"]) for e in error.errors]
    where = "; ".join(f"{place}: {message}" for place, message in places[:3])
    detail = f"The request is not valid: {where}"
    return _answer(request, 400, "invalid_request", detail, places[0][0] if places else None)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return _answer(request, 404, "not_found", "It does not exist, or you do not have access to it.")


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, DomainError):  # ninja wraps errors of the parser
        return _domain_error(request, error.__cause__)
    return _answer(request, error.status_code, "bad_request", str(error))
