"""How the pages of one person look."""

from django.conf import settings
from django.db import models


class Theme(models.TextChoices):
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"
    SYSTEM = "system", "System"


class Density(models.TextChoices):
    COMFORTABLE = "comfortable", "Comfortable"
    COMPACT = "compact", "Compact"


class TextSize(models.TextChoices):
    """Of the messages in chats."""

    SMALL = "small", "Small"
    NORMAL = "normal", "Normal"
    LARGE = "large", "Large"


class Appearance(models.Model):
    """Read with every page: the server writes it into <html>, so that nothing flashes."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="appearance",
    )
    theme = models.CharField(max_length=6, choices=Theme.choices, default=Theme.SYSTEM)
    density = models.CharField(max_length=11, choices=Density.choices, default=Density.COMFORTABLE)
    text_size = models.CharField(max_length=6, choices=TextSize.choices, default=TextSize.NORMAL)

    def __str__(self) -> str:
        return f"Appearance of {self.user}"
