from typing import Any

from django import forms

from apps.llm.models import Server
from apps.llm.services import normalised_base_url


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Adds a server, or edits one. The stored key is never shown; left empty, it stays."""

    api_key = forms.CharField(
        required=False,
        label="Key",
        help_text="If the server was started with --api-key. Stored encrypted, never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    forget_key = forms.BooleanField(required=False, label="Forget the stored key")
    kv_unified = forms.TypedChoiceField(
        required=False,
        label="Shared KV cache",
        choices=[("", "Not known"), ("yes", "Shared by all slots"), ("no", "Split between them")],
        coerce=lambda value: value == "yes",
        empty_value=None,
        help_text="Shared if -np is not given, or with --kv-unified. The server does not say.",
    )

    class Meta:
        model = Server
        fields = ["name", "base_url", "parallel", "context_stated", "kv_unified"]
        error_messages = {"name": {"unique": "There is a server of this name already."}}
        labels = {
            "base_url": "Address",
            "parallel": "Slots",
            "context_stated": "Context of a slot",
        }
        help_texts = {
            "base_url": "Such as http://127.0.0.1:8080/v1",
            "parallel": "Only where the server does not say (a proxy): its -np.",
            "context_stated": "Only where the server does not say: tokens.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server: Server = self.instance
        self.was = (server.base_url, server.encrypted_key)
        if server.kv_unified is not None:
            self.initial["kv_unified"] = "yes" if server.kv_unified else "no"
        if not server.encrypted_key:
            del self.fields["forget_key"]
        if server.from_settings:  # the environment names it, and wins at every start
            for name in ("name", "base_url", "api_key"):
                self.fields[name].disabled = True
            self.fields.pop("forget_key", None)

    def clean_base_url(self) -> str:
        return normalised_base_url(self.cleaned_data["base_url"])

    def save(self, commit: bool = True) -> Any:
        server: Server = self.instance
        if self.cleaned_data.get("forget_key"):
            server.set_key("")
        elif self.cleaned_data["api_key"] and not server.from_settings:
            server.set_key(self.cleaned_data["api_key"])
        if (server.base_url, server.encrypted_key) != self.was:
            server.forget_facts()
        return super().save(commit)
