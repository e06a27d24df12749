"""The people of this workbench, for its admins."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.accounts import people, settings_page
from apps.core.accounts.forms import InviteForm
from apps.core.accounts.limit_forms import LimitsForm
from apps.core.accounts.redirects import to_section
from apps.core.api import owner
from apps.core.models import PersonLimits
from apps.core.permissions import admins_only


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@admins_only
def index(request: HttpRequest) -> HttpResponse:
    """The settings page at its people; POST invites one more."""
    if request.method != "POST":
        return settings_page.show(request, at="people")
    form = InviteForm(request.POST)
    if not form.is_valid():
        return settings_page.show(request, at="people", status=422, invite_form=form)
    person, path = people.invite(
        form.cleaned_data["username"], admin=form.cleaned_data["role"] == "admin"
    )
    return settings_page.show(request, at="people", invited=person, link=_address(request, path))


@require_POST
@never_cache
@admins_only
def link(request: HttpRequest, pk: int) -> HttpResponse:
    """A new link for who lost theirs, or forgot the password."""
    person = get_object_or_404(people.everybody(), pk=pk, is_active=True)
    path = people.new_link(person)
    return settings_page.show(request, at="people", invited=person, link=_address(request, path))


@require_POST
@admins_only
def change(request: HttpRequest, pk: int, what: str) -> HttpResponse:
    """Make a person an admin or a member, disable them or let them in again."""
    person = get_object_or_404(people.everybody(), pk=pk, removal=None)
    by = owner(request)
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
    return to_section("people")


@require_POST
@admins_only
def limit(request: HttpRequest, pk: int) -> HttpResponse:
    """Limit what all keys of a person together may ask of model servers."""
    person = get_object_or_404(people.everybody(), pk=pk, removal=None)
    limits = PersonLimits.objects.filter(user=person).first() or PersonLimits(user=person)
    form = LimitsForm(limits, request.POST, prefix=f"person-{person.pk}")
    if form.is_valid():
        form.apply_to(limits)
        limits.save()
        messages.success(request, f"Limits of {person.username} saved.")
    else:
        messages.error(request, f"Limits of {person.username} not saved. {form.first_error()}")
    return to_section("people")


@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks first: nothing of a removed person can be brought back."""
    person = get_object_or_404(people.everybody(), pk=pk, removal=None)
    if person.pk == owner(request).pk:
        messages.error(request, "You cannot remove yourself. Ask another admin.")
        return to_section("people")
    if request.method != "POST":
        return render(request, "core/accounts/remove_person.html", {"person": person})
    if request.POST.get("name", "").strip() != person.username:
        wrong = f"Type “{person.username}” to confirm."
        context = {"person": person, "wrong": wrong}
        return render(request, "core/accounts/remove_person.html", context, status=422)
    people.remove(person, by=owner(request))
    messages.success(request, f"{person.username} was removed. Their data is being deleted.")
    return to_section("people")


def _address(request: HttpRequest, path: str) -> str:
    """Return the address people use: behind a proxy it differs from the request's."""
    origin = settings.PUBLIC_ORIGIN
    return f"{origin}{path}" if origin else request.build_absolute_uri(path)
