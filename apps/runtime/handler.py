"""The request handler: all middleware and the view of a request run in one thread, in one go.

Buys: 20 thread switches per request. Django's own asynchronous handler sends the synchronous half
of each middleware to a thread of its own, and each switch wakes a thread or the event loop.
"""

from collections.abc import Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import response_for_exception
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import Resolver404, ResolverMatch, set_urlconf
from django.utils.log import log_response
from django.utils.module_loading import import_string

from apps.runtime.static_files import CompressedStaticFiles


class SingleThreadHandler(BaseHandler):
    """Mixed into a handler.

    A coroutine view waits for something outside and holds no thread while it waits: the request
    half of all middleware runs in a thread before it, the response half in a thread after it.
    Static files are served before any middleware and without a thread.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._static_files = CompressedStaticFiles(self._answer)
        # For coroutine views: each middleware is called in two halves.
        self._middleware = [import_string(path)(_unused) for path in settings.MIDDLEWARE]

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self._static_files(request)
        return response

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            match = super().resolve_request(request)
        except Resolver404:
            match = None
        if match is None or not iscoroutinefunction(match.func):
            response: HttpResponseBase = await sync_to_async(self.get_response)(request)
            return response
        passed, answer = await sync_to_async(self.process_request)(request, match)
        if answer is None:
            try:
                answer = await match.func(request, *match.args, **match.kwargs)
                self.check_response(answer, match.func)
            except Exception as error:
                answer = await sync_to_async(self.process_exception)(request, error)
        return await sync_to_async(self.process_response)(request, answer, passed)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        # Resolved when the request arrived.
        return request.resolver_match or super().resolve_request(request)

    def process_request(
        self, request: HttpRequest, match: ResolverMatch
    ) -> tuple[int, HttpResponseBase | None]:
        """Run the request half of the middleware; return how many ran, and their response."""
        set_urlconf(settings.ROOT_URLCONF)
        for passed, middleware in enumerate(self._middleware):
            try:
                answer = _call_half(middleware, "process_request", request)
            except Exception as error:
                return passed, response_for_exception(request, error)
            if answer is not None:
                return passed + 1, answer
        for middleware in self._middleware:
            arguments = (request, match.func, match.args, match.kwargs)
            try:
                answer = _call_half(middleware, "process_view", *arguments)
            except Exception as error:
                answer = response_for_exception(request, error)
            if answer is not None:
                return len(self._middleware), answer
        return len(self._middleware), None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase:
        """Return the response to an error of a view."""
        answer: HttpResponseBase | None = self.process_exception_by_middleware(error, request)
        return answer or response_for_exception(request, error)

    def process_response(
        self, request: HttpRequest, answer: HttpResponseBase, passed: int
    ) -> HttpResponseBase:
        """Run the response half of the middleware whose request half ran."""
        try:
            if isinstance(answer, SimpleTemplateResponse):
                answer.render()
        except Exception as error:
            answer = self.process_exception(request, error)
        for middleware in reversed(self._middleware[:passed]):
            try:
                answer = _call_half(middleware, "process_response", request, answer) or answer
            except Exception as error:
                answer = response_for_exception(request, error)
        request.close()
        if answer.status_code >= 400:
            said = (answer.reason_phrase, request.path)
            log_response("%s: %s", *said, response=cast(Any, answer), request=request)
        return answer


def _unused(request: HttpRequest) -> HttpResponseBase:
    """A middleware called in halves calls no next one."""
    raise NotImplementedError


def _call_half(middleware: Any, name: str, *arguments: Any) -> HttpResponseBase | None:
    method: Callable[..., HttpResponseBase | None] | None = getattr(middleware, name, None)
    return None if method is None else method(*arguments)


class Handler(SingleThreadHandler, ASGIHandler):
    """Serves the site."""
