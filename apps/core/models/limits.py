"""What a key, or all keys of a person, may ask of model servers."""

from django.conf import settings
from django.db import models


class Limits(models.Model):
    """Limits of programs. None: no limit."""

    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True, blank=True)
    in_flight = models.PositiveIntegerField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    allowed_models = models.JSONField(default=list, blank=True, help_text="Names. Empty: all.")

    class Meta:
        abstract = True

    @property
    def limit_texts(self) -> list[str]:
        """Return each limit in words."""
        names = len(self.allowed_models)
        texts = [
            self.requests_per_minute and f"{self.requests_per_minute:,} requests/min",
            self.tokens_per_day and f"{self.tokens_per_day:,} tokens a day",
            self.in_flight and f"{self.in_flight:,} in flight",
            self.max_tokens and f"max_tokens up to {self.max_tokens:,}",
            names and f"{names} model{'s' if names > 1 else ''}",
        ]
        return [text for text in texts if text]


class PersonLimits(Limits):
    """Limits of all keys of a person together; admins set them."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="program_limits"
    )

    def __str__(self) -> str:
        return f"Limits of {self.user}"
