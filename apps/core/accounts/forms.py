"""Forms for accounts: name, password, invitation."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User

from apps.core.models import Appearance


class NameForm(forms.ModelForm):  # type: ignore[type-arg]
    """The name a person logs in with."""

    class Meta:
        model = User
        fields = ["username"]
        labels = {"username": "Name"}
        help_texts = {"username": "The name you log in with: letters, digits and @ . + - _"}


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    role = forms.ChoiceField(choices=[("member", "Member"), ("admin", "Admin")], initial="member")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="invite_%s")  # beside the form of one's own name

    class Meta:
        model = User
        fields = ["username"]
        labels = {"username": "Name"}
        help_texts = {"username": "They log in with it, and can change it later."}


class AppearanceForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Appearance
        fields = ["theme", "density", "text_size"]

    @classmethod
    def values_of(cls, appearance: Appearance) -> dict[str, str]:
        """Return the saved values by field: a control sends its own value alone."""
        return {name: getattr(appearance, name) for name in cls.Meta.fields}


def password_form(user: User, data: Any = None) -> "SetPasswordForm[User]":
    """Changes a password; the old one is required where there is one."""
    form = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    return form(user, data)
