from typing import Any, cast

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from apps.core import first_page
from apps.core.accounts import login_rate_limit
from apps.core.context import PLACES
from apps.core.models import LoginLink

PLACE_COOKIE = "place"  # written by static/core/shell.js


@login_not_required
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Tell supervisors and load balancers that this process answers, and nothing else."""
    return JsonResponse({"status": "ok"})


class LoginForm(AuthenticationForm):
    """Username and password, refused in the words of the interface."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": "Wrong username or password. Check upper and lower case."
    }


@method_decorator(login_not_required, name="dispatch")
class Login(LoginView):
    authentication_form = LoginForm
    template_name = "core/accounts/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        seconds = login_rate_limit.count_try(*self._who())
        return self._not_now(seconds) if seconds else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        login_rate_limit.was_right(*self._who())
        return super().form_valid(form)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", ""), self.request.META.get("REMOTE_ADDR", "")

    def _not_now(self, seconds: int) -> HttpResponse:
        context = {"wait": login_rate_limit.wait_in_words(seconds)}
        answer = render(self.request, "core/accounts/too_many_attempts.html", context, status=429)
        answer["Retry-After"] = str(seconds)
        return answer


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """The one-time link of a start, of an invitation or for a forgotten password.

    Opening it shows a form and uses nothing up: mail programs and chats look at links too.
    """
    link = LoginLink.find(token)
    if link is None:
        if request.user.is_authenticated:  # the same link once more, in the browser it let in
            return redirect("/")
        return render(request, "core/accounts/login_link_used.html", status=410)
    form: SetPasswordForm[User] | None = None
    if link.sets_password:
        form = SetPasswordForm(link.user, request.POST or None)
    if request.method != "POST" or (form is not None and not form.is_valid()):
        context = {"form": form, "person": link.user}
        template = "core/accounts/choose_password.html" if form else "core/accounts/login_link.html"
        return render(request, template, context, status=422 if request.method == "POST" else 200)
    with transaction.atomic():
        user = LoginLink.redeem(token)
        if user is not None and form is not None:
            form.user = user
            form.save()
    if user is None:  # somebody else was faster
        return render(request, "core/accounts/login_link_used.html", status=410)
    login(request, user)
    return redirect("/")


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The first page of a person who has begun with nothing; else the place they were last."""
    user = cast(User, request.user)
    if first_page.is_new(user):
        return render(request, "core/first_page.html", {"cards": first_page.cards(user)})
    last = request.COOKIES.get(PLACE_COOKIE, "")
    known = {place.label.lower(): place.url_name for place in PLACES}
    return redirect(known.get(last, "chat:index"))
