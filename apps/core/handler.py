"""How a request gets from the event loop to its view and back."""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from apps.core.static_files import CompressedStaticFiles


class InOneThread(BaseHandler):
    """Mixed into a handler: all middleware and the view run in one thread, in one go.

    Django's own way through asynchronous middleware hands the synchronous half of each to a thread,
    twice a request: twenty hops, and each wakes a thread or the event loop. Files are served before
    that, without any: reading them is asynchronous.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._files_first = CompressedStaticFiles(sync_to_async(self.get_response))

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self._files_first(request)
        return response


class Handler(InOneThread, ASGIHandler):
    """Serves the site."""
