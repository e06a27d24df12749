"""How a request gets from the event loop to its view and back."""

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


class InOneThread(BaseHandler):
    """Mixed into a handler: all middleware and the view run in one thread, in one go.

    Django's own way through asynchronous middleware hands the synchronous half of each to a thread,
    twice a request: twenty hops, and each wakes a thread or the event loop. Files are served before
    that, without any: reading them is asynchronous.

    A view that is a coroutine waits for something outside, and holds no thread while it does: all
    middleware runs in a thread before it, in one go, and once more after it.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._files_first = CompressedStaticFiles(self._answer)
        # For coroutines, whose middleware is called in halves.
        self._middleware = [import_string(path)(_never) for path in settings.MIDDLEWARE]

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self._files_first(request)
        return response

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            match = super().resolve_request(request)
        except Resolver404:
            match = None
        if match is None or not iscoroutinefunction(match.func):
            response: HttpResponseBase = await sync_to_async(self.get_response)(request)
            return response
        passed, answer = await sync_to_async(self.before)(request, match)
        if answer is None:
            try:
                answer = await match.func(request, *match.args, **match.kwargs)
                self.check_response(answer, match.func)
            except Exception as error:
                answer = await sync_to_async(self.failed)(request, error)
        return await sync_to_async(self.after)(request, answer, passed)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        # Looked for when it came.
        return request.resolver_match or super().resolve_request(request)

    def before(
        self, request: HttpRequest, match: ResolverMatch
    ) -> tuple[int, HttpResponseBase | None]:
        """The half of the middleware before a view: how many were passed, and their answer."""
        set_urlconf(settings.ROOT_URLCONF)
        for passed, middleware in enumerate(self._middleware):
            try:
                answer = _half(middleware, "process_request", request)
            except Exception as error:
                return passed, response_for_exception(request, error)
            if answer is not None:
                return passed + 1, answer
        for middleware in self._middleware:
            arguments = (request, match.func, match.args, match.kwargs)
            try:
                answer = _half(middleware, "process_view", *arguments)
            except Exception as error:
                answer = response_for_exception(request, error)
            if answer is not None:
                return len(self._middleware), answer
        return len(self._middleware), None

    def failed(self, request: HttpRequest, error: Exception) -> HttpResponseBase:
        """What is answered where a view raised an error."""
        answer: HttpResponseBase | None = self.process_exception_by_middleware(error, request)
        return answer or response_for_exception(request, error)

    def after(
        self, request: HttpRequest, answer: HttpResponseBase, passed: int
    ) -> HttpResponseBase:
        """The half of the middleware after a view, as far as it was passed before."""
        try:
            if isinstance(answer, SimpleTemplateResponse):
                answer.render()
        except Exception as error:
            answer = self.failed(request, error)
        for middleware in reversed(self._middleware[:passed]):
            try:
                answer = _half(middleware, "process_response", request, answer) or answer
            except Exception as error:
                answer = response_for_exception(request, error)
        request.close()
        if answer.status_code >= 400:
            said = (answer.reason_phrase, request.path)
            log_response("%s: %s", *said, response=cast(Any, answer), request=request)
        return answer


def _never(request: HttpRequest) -> HttpResponseBase:
    """What a middleware would call that is not called in halves."""
    raise NotImplementedError


def _half(middleware: Any, name: str, *arguments: Any) -> HttpResponseBase | None:
    method: Callable[..., HttpResponseBase | None] | None = getattr(middleware, name, None)
    return None if method is None else method(*arguments)


class Handler(InOneThread, ASGIHandler):
    """Serves the site."""
