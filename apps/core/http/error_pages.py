"""Answers other than success that no view gives: one shape for programs, a page for people."""

import errno
import shutil
import sqlite3
import sys
from dataclasses import dataclass

from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views import defaults
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import TimeoutError as RedisSlow

from apps.core.http.anthropic_errors import ANTHROPIC, anthropic_error
from apps.core.http.openai_errors import OPENAI, openai_error
from apps.core.quotas import LimitReached
from apps.core.schemas.json_types import JsonObject

API = "/api/"
# An SQLite that cannot grow its files does not always say why.
NEARLY_NOTHING_BYTES = 1024 * 1024
# PostgreSQL: a lock that did not come, a deadlock, a transaction in the way, no free connection.
_BUSY = {"55P03", "40P01", "40001", "53300"}


@dataclass(frozen=True)
class Refusal:
    """The reason a request is refused: `code` is for programs, `detail` for people."""

    status: int
    code: str
    detail: str
    retry_after: int | None = None


UNAUTHORIZED = Refusal(401, "unauthorized", "Send a valid key as `Authorization: Bearer wb_...`.")
DISK_FULL = Refusal(
    507,
    "disk_full",
    "The disk of the workbench is full: nothing can be saved. What was saved is safe. "
    "Free some space, or ask who runs this workbench to.",
)
BUSY = Refusal(
    503, "busy", "The database is busy: nothing was saved. Try again in a moment.", retry_after=2
)
NUMBER_TOO_LARGE = Refusal(422, "invalid", "A number in the request is too large.")
UNSTORABLE = Refusal(
    422,
    "invalid",
    "The request has a character that cannot be stored: NUL, or half of a surrogate pair.",
)
NO_REDIS = Refusal(
    503,
    "no_redis",
    "The workbench's Redis does not answer. It is tried again with each request.",
    retry_after=2,
)


def is_api_request(request: HttpRequest) -> bool:
    """True if a program asks: it gets JSON in every case."""
    return is_api_path(request.path_info)


def is_api_path(path: str) -> bool:
    return path.startswith((API, OPENAI))


def refusal_json(path: str, refusal: Refusal) -> JsonObject:
    """Return a refusal in the shape of the API at this address."""
    if path.startswith(ANTHROPIC):
        return anthropic_error(refusal.status, refusal.detail)
    if path.startswith(OPENAI):
        return openai_error(refusal.status, refusal.code, refusal.detail)
    return {"code": refusal.code, "detail": refusal.detail, "errors": []}


def refusal_for(error: BaseException | None) -> Refusal | None:
    """Return the refusal that an error stands for; None where it is a fault of our own."""
    if isinstance(error, LimitReached):
        return Refusal(429, "too_many", str(error), error.retry_after)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DISK_FULL
    if isinstance(error, RedisAway | RedisSlow):
        return NO_REDIS
    if isinstance(error, DatabaseError):
        return _of_the_database(error)
    if isinstance(error, ValueError | OverflowError):
        return _of_the_request(error)
    return None


def _of_the_request(error: ValueError | OverflowError) -> Refusal | None:
    """Numbers and texts that Python or a database does not take. They have no class of their own.

    A view that reads a number out of a form need not know how long numbers may be.
    """
    if isinstance(error, UnicodeEncodeError):
        return UNSTORABLE if error.reason == "surrogates not allowed" else None
    said = str(error)
    if isinstance(error, OverflowError):
        return NUMBER_TOO_LARGE if said.endswith("to convert to SQLite INTEGER") else None
    if said.startswith("Exceeds the limit (") and "digits" in said:
        return NUMBER_TOO_LARGE
    return UNSTORABLE if "NUL (0x00) characters" in said else None


def _of_the_database(error: DatabaseError) -> Refusal | None:
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    if state == "53100":
        return DISK_FULL
    if state == "22P05" or "NUL (0x00)" in str(error):  # untranslatable_character
        return UNSTORABLE
    if state == "22003":  # numeric_value_out_of_range
        return NUMBER_TOO_LARGE
    if state in _BUSY or type(cause).__name__ == "PoolTimeout":
        return BUSY
    if not isinstance(cause, sqlite3.Error):
        return None
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return BUSY
    is_full = code == sqlite3.SQLITE_FULL or (
        code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and _nothing_is_free()
    )
    return DISK_FULL if is_full else None


def _nothing_is_free() -> bool:
    return shutil.disk_usage(settings.DATA_DIR).free < NEARLY_NOTHING_BYTES


def refuse(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """A refusal as JSON for a program, as a sentence for a fragment, as a page for a person."""
    if is_api_request(request):
        said = refusal_json(request.path_info, refusal)
        response: HttpResponse = JsonResponse(said, status=refusal.status)
    elif request.headers.get("HX-Request"):
        plain = "text/plain; charset=utf-8"
        response = HttpResponse(refusal.detail, content_type=plain, status=refusal.status)
    else:
        response = render(request, "overloaded.html", {"refusal": refusal}, status=refusal.status)
    if refusal.retry_after is not None:
        response["Retry-After"] = str(refusal.retry_after)
    return response


# --- Django asks for these where nothing else has an answer (workbench/urls.py) ---------------


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api_request(request):
        return refuse(request, Refusal(400, "bad_request", "The request cannot be read."))
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api_request(request):
        detail = str(exception) or "You do not have permission to do this."
        return refuse(request, Refusal(403, "forbidden", detail))
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api_request(request):
        detail = "There is no such address."
        if request.path_info.startswith(API):
            detail += " /api/v1/docs lists them."
        return refuse(request, Refusal(404, "not_found", detail))
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if refusal := refusal_for(sys.exception()):
        return refuse(request, refusal)
    if is_api_request(request):
        detail = "Something went wrong. Details are in the log of Workbench."
        return refuse(request, Refusal(500, "internal_error", detail))
    return defaults.server_error(request)
