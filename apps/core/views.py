from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.core import login_throttle
from apps.core.models import ApiKey, LoginLink


@login_not_required
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """For supervisors and load balancers: this process answers. Says nothing else to strangers."""
    return JsonResponse({"status": "ok"})


@method_decorator(login_not_required, name="dispatch")
class Login(LoginView):
    template_name = "core/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        seconds = login_throttle.count_try(*self._who())
        return self._not_now(seconds) if seconds else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        login_throttle.was_right(*self._who())
        return super().form_valid(form)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", ""), self.request.META.get("REMOTE_ADDR", "")

    def _not_now(self, seconds: int) -> HttpResponse:
        context = {"wait": login_throttle.wait_in_words(seconds)}
        answer = render(self.request, "core/login_not_now.html", context, status=429)
        answer["Retry-After"] = str(seconds)
        return answer


@login_not_required
@never_cache
@require_safe
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """The one-time link that `make run` prints."""
    user = LoginLink.redeem(token)
    if user is None:
        if request.user.is_authenticated:  # the same link once more, in the browser it let in
            return redirect("/")
        return render(request, "core/login_link_used.html", status=410)
    login(request, user)
    return redirect("/")


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return redirect("chat:index")


@require_safe
def settings_page(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, User)
    token = request.session.pop("new_api_key", None)  # shown this once
    return render(
        request, "core/settings.html", {"keys": request.user.api_keys.all(), "new_token": token}
    )


@require_POST
def create_key(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, User)
    name = request.POST.get("name", "").strip()[:100]
    if not name:
        messages.error(request, "Give the key a name, so that you know later what it is for.")
    else:
        _, request.session["new_api_key"] = ApiKey.issue(user=request.user, name=name)
    return redirect("core:settings")


@require_POST
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    assert isinstance(request.user, User)
    key = get_object_or_404(request.user.api_keys, pk=pk)
    key.delete()
    messages.success(request, f"The key “{key.name}” no longer works.")
    return redirect("core:settings")
