from typing import Any

from django import forms

from apps.llm.models import Server
from apps.llm.services import normalised_base_url


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    api_key = forms.CharField(
        required=False,
        label="Key",
        help_text="If the server was started with --api-key. Stored encrypted, never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    class Meta:
        model = Server
        fields = ["name", "base_url", "parallel"]
        labels = {"base_url": "Address", "parallel": "Slots"}
        help_texts = {
            "base_url": "Such as http://127.0.0.1:8080/v1",
            "parallel": "Only where the server does not say (a proxy): its -np.",
        }

    def clean_base_url(self) -> str:
        return normalised_base_url(self.cleaned_data["base_url"])

    def save(self, commit: bool = True) -> Any:
        self.instance.set_key(self.cleaned_data["api_key"])
        return super().save(commit)
