"""What one person may have at a time."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from apps.core import quotas
from apps.core.http import error_pages
from apps.core.quotas import KINDS, LimitReached, hold, limited
from tests.waiting import until


@pytest.fixture(autouse=True)
def _two(settings: Settings) -> None:
    settings.LIMITS = dict.fromkeys(KINDS, 2)


def test_every_kind_has_a_figure_and_words() -> None:
    from workbench import settings as real

    assert set(real.LIMITS) == set(KINDS)
    assert min(real.LIMITS.values()) > 0


def test_the_third_is_refused_with_the_figure_and_a_place_comes_back() -> None:
    with hold(1, "previews"):
        with hold(1, "previews"):
            with pytest.raises(LimitReached, match=r"You have 2 previews .* no more are allowed"):
                hold(1, "previews")
            with hold(1, "uploads"), hold(2, "previews"):
                pass  # another kind, another person
        with hold(1, "previews"):
            pass
    assert not quotas.held()


def test_a_place_is_given_back_once_and_when_nobody_has_it() -> None:
    first, second = hold(1, "streams"), hold(1, "streams")
    first.release()
    first.release()
    with hold(1, "streams"), pytest.raises(LimitReached):
        hold(1, "streams")
    del second
    with hold(1, "streams"), hold(1, "streams"):
        pass


def test_hold_gives_its_place_back_after_an_error() -> None:
    for _ in range(5):
        with pytest.raises(ZeroDivisionError), hold(1, "previews"):
            raise ZeroDivisionError


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 2), st.sampled_from(["previews", "uploads"])),
        max_size=20,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hold_never_gives_a_person_more_places_than_the_limit(
    steps: list[tuple[bool, int, str]],
) -> None:
    places: dict[tuple[str, int], list[hold]] = {}
    for takes, person, kind in steps:
        mine = places.setdefault((kind, person), [])
        if not takes:
            for place in mine[:1]:
                place.release()
                mine.remove(place)
        elif len(mine) < 2:
            mine.append(hold(person, kind))
        else:
            with pytest.raises(LimitReached):
                hold(person, kind)
        assert quotas.held() == {key: len(held) for key, held in places.items() if held}
    for place in [place for held in places.values() for place in held]:
        place.release()
    assert not quotas.held()


def test_check_refuses_a_count_at_the_limit() -> None:
    quotas.check("keys", 1)
    with pytest.raises(LimitReached, match="You have 2 API keys") as refused:
        quotas.check("keys", 2)
    assert refused.value.retry_after is None  # waiting does not help


async def test_a_view_has_a_place_while_it_runs() -> None:
    request = RequestFactory().get("/")
    request.user = User(pk=7)
    release = asyncio.Event()

    running = 0

    @limited("looks")
    async def waits(request: HttpRequest) -> HttpResponse:
        nonlocal running
        running += 1
        await release.wait()
        return HttpResponse("seen")

    @limited("looks")
    def plain(request: HttpRequest) -> HttpResponse:
        return HttpResponse("seen")

    tasks = [asyncio.create_task(waits(request)) for _ in range(2)]
    await until(lambda: running == 2)
    with pytest.raises(LimitReached):
        await waits(request)
    with pytest.raises(LimitReached):
        plain(request)
    release.set()
    assert [answer.content for answer in await asyncio.gather(*tasks)] == [b"seen"] * 2
    assert plain(request).content == b"seen"


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/generate/", {}, "text/html"),
        ("/generate/", {"HX-Request": "true"}, "text/plain"),
        ("/api/v1/jobs", {}, "application/json"),
    ],
)
def test_limit_reached_is_answered_in_the_format_of_the_request(
    path: str, headers: dict[str, Any], kind: str
) -> None:
    request = RequestFactory().get(path, headers=headers)
    reason = error_pages.refusal_for(LimitReached("previews", 4))
    assert reason is not None
    answer = error_pages.refuse(request, reason)
    assert (answer.status_code, answer["Retry-After"]) == (429, "5")
    assert answer["Content-Type"].startswith(kind)
    assert b"You have 4 previews" in answer.content
