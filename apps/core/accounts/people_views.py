"""The people of this workbench, for its admins."""

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.accounts import people
from apps.core.accounts.forms import InviteForm
from apps.core.models import INVITATION_LIFETIME, LoginLink
from apps.core.permissions import admins_only


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@admins_only
def index(request: HttpRequest) -> HttpResponse:
    """Everybody, and a form that invites one more."""
    if request.method != "POST":
        return _page(request)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form)
    person, path = people.invite(
        form.cleaned_data["username"], admin=form.cleaned_data["role"] == "admin"
    )
    return _page(request, invited=person, link=_address(request, path))


@require_POST
@never_cache
@admins_only
def link(request: HttpRequest, pk: int) -> HttpResponse:
    """A new link for who lost theirs, or forgot the password."""
    person = get_object_or_404(people.everybody(), pk=pk, is_active=True)
    path = people.new_link(person)
    return _page(request, invited=person, link=_address(request, path))


@require_POST
@admins_only
def change(request: HttpRequest, pk: int, what: str) -> HttpResponse:
    """Make a person an admin or a member, disable them or let them in again."""
    person = get_object_or_404(people.everybody(), pk=pk, removal=None)
    by = _user(request)
    try:
        if what in {"admin", "member"}:
            people.set_admin(person, what == "admin", by=by)
            done = f"{person.username} is now {'an admin' if what == 'admin' else 'a member'}."
        else:
            people.set_active(person, what == "enable", by=by)
            can = "can log in again" if what == "enable" else "can no longer log in"
            done = f"{person.username} {can}."
    except people.NotAllowed as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect("core:people")


@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first: nothing of a removed person can be brought back."""
    person = get_object_or_404(people.everybody(), pk=pk, removal=None)
    if person.pk == _user(request).pk:
        messages.error(request, "You cannot remove yourself. Ask another admin.")
        return redirect("core:people")
    if request.method != "POST":
        return render(request, "core/accounts/remove_person.html", {"person": person})
    if request.POST.get("name", "").strip() != person.username:
        wrong = f"Type “{person.username}” to confirm."
        context = {"person": person, "wrong": wrong}
        return render(request, "core/accounts/remove_person.html", context, status=422)
    people.remove(person, by=_user(request))
    messages.success(request, f"{person.username} was removed. Their data is being deleted.")
    return redirect("core:people")


def _page(
    request: HttpRequest,
    *,
    form: InviteForm | None = None,
    invited: User | None = None,
    link: str = "",
) -> HttpResponse:
    waiting = LoginLink.objects.waiting().filter(sets_password=True)
    context = {
        "people": people.everybody().select_related("removal"),
        "invitations": dict(waiting.values_list("user_id", "expires")),
        "form": form or InviteForm(),
        "invited": invited,
        "link": link,
        "here_only": urlsplit(link).hostname in {"localhost", "127.0.0.1", "::1"},
        "days": INVITATION_LIFETIME.days,
    }
    return render(request, "core/accounts/people.html", context, status=422 if form else 200)


def _address(request: HttpRequest, path: str) -> str:
    """Return the address people use: behind a proxy it differs from the request's."""
    origin = settings.PUBLIC_ORIGIN
    return f"{origin}{path}" if origin else request.build_absolute_uri(path)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
