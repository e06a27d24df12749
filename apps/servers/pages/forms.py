from typing import Any

from django import forms

from apps.llm.addresses import UNSENDABLE_KEY, is_valid_key, validate_address
from apps.servers.entries import same_address
from apps.servers.models import Server


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Add or edit a server. The stored key is never shown.

    An empty field keeps it, as long as the address stays.
    """

    # Not the model's own field, which would refuse "localhost:8080" before its scheme is added.
    base_url = forms.CharField(
        max_length=500, label="Address", help_text="e.g. http://127.0.0.1:8080/v1"
    )
    api_key = forms.CharField(
        required=False,
        label="API key",
        help_text=(
            "Needed if the server was started with --api-key. Stored encrypted and "
            "never shown again."
        ),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    forget_key = forms.BooleanField(required=False, label="Delete the stored key")
    kv_unified = forms.TypedChoiceField(
        required=False,
        label="Shared KV cache",
        choices=[
            ("", "Not set (learned from requests)"),
            ("yes", "Shared by all slots"),
            ("no", "Split between them"),
        ],
        coerce=lambda value: value == "yes",
        empty_value=None,
        help_text=(
            "Shared if -np is not given, or with --kv-unified. Not known: each slot is taken to "
            "have its own until requests outgrow a shared one."
        ),
    )

    class Meta:
        model = Server
        fields = ["name", "base_url", "parallel", "context_stated", "kv_unified", "model_group"]
        error_messages = {"name": {"unique": "A server with this name already exists."}}
        labels = {
            "parallel": "Slots",
            "context_stated": "Context per slot (tokens)",
            "model_group": "Model group",
        }
        help_texts = {
            "parallel": "Only needed if not reported. Empty: measured while jobs run.",
            "context_stated": "Only needed if not reported.",
            "model_group": (
                "Servers of one group serve the same model under different names, and work on a "
                "job together. Not needed for llama.cpp servers that use the same name."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server: Server = self.instance
        self.before = (server.base_url, server.encrypted_key)
        self.lost_key = False
        """The address was changed and no new key entered: the stored one is gone."""
        if server.kv_unified is not None:
            self.initial["kv_unified"] = "yes" if server.kv_unified else "no"
        if not server.encrypted_key:
            del self.fields["forget_key"]
        if server.from_settings:  # the environment names it, and wins at every start
            for name in ("name", "base_url", "api_key"):
                self.fields[name].disabled = True
            self.fields.pop("forget_key", None)

    def clean_base_url(self) -> str:
        try:
            return validate_address(self.cleaned_data["base_url"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"]
        if not is_valid_key(key):
            raise forms.ValidationError(UNSENDABLE_KEY)
        return key

    def clean(self) -> dict[str, Any]:
        """Refuse a second entry for one server. Two that are there already can be changed."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance.from_settings or not {"base_url", "api_key"} <= cleaned.keys():
            return cleaned
        base_url, key = cleaned["base_url"], cleaned["api_key"]
        if cleaned.get("forget_key"):
            key = ""
        elif not key and base_url == self.before[0]:
            key = Server(encrypted_key=self.before[1]).endpoint.api_key
        if twin := same_address.find_twin(base_url, key, changed=self.instance):
            self.add_error("base_url", same_address.refusal(twin))
        return cleaned

    def full_clean(self) -> None:
        """Focus the first field with an error, which also scrolls it into view."""
        super().full_clean()
        for name in self.errors:
            if name in self.fields:
                self.fields[name].widget.attrs["autofocus"] = True
                break

    def save(self, commit: bool = True) -> Any:
        server: Server = self.instance
        base_url = self.cleaned_data["base_url"]
        server.base_url = self.before[0]  # validation has written the new one into it
        self.lost_key = server.move_to(base_url) and not self.cleaned_data["api_key"]
        if self.cleaned_data.get("forget_key"):
            server.set_key("")
        elif self.cleaned_data["api_key"] and not server.from_settings:
            server.set_key(self.cleaned_data["api_key"])
        if (server.base_url, server.encrypted_key) != self.before:
            server.forget_facts()
        return super().save(commit)
