"""The form of the limits of a key, or of all keys of a person."""

from typing import Any

from django import forms

from apps.core.models import Limits

MAX_MODELS = 50
MAX_NAME = 300
# Each is a time in Redis for a minute.
MAX_REQUESTS_PER_MINUTE = 10_000
NO_LIMIT = "No limit"
NUMBERS = {
    "requests_per_minute": ("Requests a minute", MAX_REQUESTS_PER_MINUTE),
    "tokens_per_day": ("Tokens a day", 10**15),
    "in_flight": ("Requests in flight", 10_000),
    "max_tokens": ("Largest max_tokens", 10**9),
}


class LimitsForm(forms.Form):
    """What is empty has no limit."""

    allowed_models = forms.CharField(
        label="Models",
        required=False,
        max_length=MAX_MODELS * MAX_NAME,
        help_text="One name per line, as in GET /v1/models",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "All models"}),
    )

    def __init__(self, limits: Limits | None, data: Any = None, *, prefix: str) -> None:
        """
        Args:
            limits: the values to begin with.
            prefix: of the names and ids of the fields.
        """
        initial = {name: getattr(limits, name) for name in NUMBERS} if limits else {}
        names = limits.allowed_models if limits else []
        super().__init__(
            data, initial={**initial, "allowed_models": "\n".join(names)}, prefix=prefix
        )
        for name, (label, largest) in NUMBERS.items():
            self.fields[name] = forms.IntegerField(
                label=label,
                required=False,
                min_value=1,
                max_value=largest,
                widget=forms.NumberInput(attrs={"placeholder": NO_LIMIT}),
            )
        self.order_fields([*NUMBERS])

    def clean_allowed_models(self) -> list[str]:
        lines = self.cleaned_data["allowed_models"].splitlines()
        names = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if len(names) > MAX_MODELS:
            raise forms.ValidationError(f"{len(names)} models are more than {MAX_MODELS}.")
        return names

    def first_error(self) -> str:
        """Return what is wrong with the first wrong field, which it names."""
        name, messages = next(iter(self.errors.items()))
        return f"{self.fields[name].label}: {messages[0]}"

    def apply_to(self, limits: Limits) -> list[str]:
        """Set the limits; return the names of the fields."""
        for name, value in self.cleaned_data.items():
            setattr(limits, name, value)
        return list(self.cleaned_data)
