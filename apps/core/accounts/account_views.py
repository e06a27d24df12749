"""Pages of one's own account: name, password, devices, appearance."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.core.accounts import devices, settings_page
from apps.core.accounts.forms import AppearanceForm, NameForm, password_form
from apps.core.accounts.redirects import to_section
from apps.core.api import owner
from apps.core.models import Appearance


@require_safe
@never_cache
def show_settings(request: HttpRequest) -> HttpResponse:
    revoked = request.GET.get("revoked", "")
    key = (
        owner(request).api_keys.filter(pk=revoked, revoked__isnull=False).first()
        if revoked.isdecimal()
        else None
    )
    return settings_page.show(request, revoked_key=key)


@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    # The form writes into its instance before it knows whether the name may be had.
    form = NameForm(request.POST, instance=User.objects.get(pk=owner(request).pk))
    if not form.is_valid():
        return settings_page.show(request, status=422, name_form=form, name_refused=True)
    form.save()
    messages.success(request, f"Your name is now “{form.instance.username}”.")
    return to_section("account")


@require_POST
def change_password(request: HttpRequest) -> HttpResponse:
    form = password_form(owner(request), request.POST)
    if not form.is_valid():
        return settings_page.show(request, status=422, password_form=form, password_refused=True)
    before = request.session.session_key
    update_session_auth_hash(request, form.save())  # this browser stays signed in, others do not
    devices.follow(before, request.session.session_key)
    devices.sign_out_others(owner(request), request.session.session_key)
    messages.success(request, "Your password was changed. Other devices were logged out.")
    return to_section("account")


@require_POST
def sign_out_others(request: HttpRequest) -> HttpResponse:
    ended = devices.sign_out_others(owner(request), request.session.session_key)
    things = "device" if ended == 1 else "devices"
    messages.success(request, f"{ended} other {things} logged out.")
    return to_section("account")


@require_POST
def set_appearance(request: HttpRequest) -> HttpResponse:
    """Save what was sent of theme, density and text size; the page has applied it already."""
    appearance, _ = Appearance.objects.get_or_create(user=owner(request))
    form = AppearanceForm(
        {**AppearanceForm.values_of(appearance), **request.POST.dict()}, instance=appearance
    )
    if not form.is_valid():
        return HttpResponseBadRequest("Choose one of the values shown.", content_type="text/plain")
    form.save()
    return HttpResponse("Saved") if request.headers.get("HX-Request") else to_section("appearance")
