"""Helpers that the pages of this room share."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from apps.core.api import get_owned
from apps.datasets.models import Dataset


def mine(request: HttpRequest, pk: int) -> Dataset:
    """Raises:
    Http404: it is not there, or not theirs.
    """
    return get_owned(Dataset, request, pk)


def who(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def is_fragment(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def go(request: HttpRequest, url: str) -> HttpResponse:
    """Redirect, also htmx, which would put the other page inside this one."""
    if is_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return redirect(url)


def back(request: HttpRequest, dataset: Dataset) -> HttpResponse:
    """Redirect to the page of rows that the form was on, with its filters."""
    url = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()}):
        url = reverse("datasets:detail", args=[dataset.pk])
    return go(request, url)


def numbers(values: list[str], limit: int = 1_000) -> list[int]:
    """Return the whole numbers among these, without duplicates."""
    found = (int(value) for value in values[:limit] if value.isdecimal() and len(value) < 10)
    return list(dict.fromkeys(found))
