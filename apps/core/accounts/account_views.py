"""Pages of one's own account: name, password, API keys."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.core import quotas
from apps.core.accounts.forms import NameForm, password_form
from apps.core.models import ApiKey


@require_safe
@never_cache
def settings_page(request: HttpRequest) -> HttpResponse:
    return _settings(request)


@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    # The form writes into its instance before it knows whether the name may be had.
    form = NameForm(request.POST, instance=User.objects.get(pk=_user(request).pk))
    if not form.is_valid():
        return _settings(request, name_form=form)
    form.save()
    messages.success(request, f"Your name is now “{form.instance.username}”.")
    return redirect("core:settings")


@require_POST
def change_password(request: HttpRequest) -> HttpResponse:
    form = password_form(_user(request), request.POST)
    if not form.is_valid():
        return _settings(request, password=form)
    update_session_auth_hash(request, form.save())  # this browser stays logged in, others do not
    messages.success(request, "Your password was changed. Other browsers were logged out.")
    return redirect("core:settings")


@require_POST
@never_cache
def create_key(request: HttpRequest) -> HttpResponse:
    """The new key is in this answer and nowhere else: not in the session, not in the database."""
    name = request.POST.get("name", "").strip()[:100]
    if not name:
        messages.error(request, "Give the key a name, so that you know later what it is for.")
        return redirect("core:settings")
    quotas.check("keys", _user(request).api_keys.count())
    _, token = ApiKey.issue(user=_user(request), name=name)
    return _settings(request, new_token=token, new_name=name)


@require_POST
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(_user(request).api_keys, pk=pk)
    key.delete()
    messages.success(request, f"The key “{key.name}” no longer works.")
    return redirect("core:settings")


def _settings(
    request: HttpRequest,
    *,
    name_form: NameForm | None = None,
    password: "SetPasswordForm[User] | None" = None,
    new_token: str = "",
    new_name: str = "",
) -> HttpResponse:
    user = _user(request)
    refused = bool(name_form or password)
    context = {
        "keys": user.api_keys.all(),
        "name_form": name_form or NameForm(instance=user),
        "password_form": password or password_form(user),
        "password_refused": password is not None,
        "new_token": new_token,
        "new_name": new_name,
    }
    return render(request, "core/accounts/settings.html", context, status=422 if refused else 200)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
