"""The browsers a person is signed in on."""

from django.conf import settings
from django.db import models


class Device(models.Model):
    """One login of one browser. It ends with its session."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    user_agent = models.CharField(max_length=300, blank=True)
    signed_in = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-signed_in", "-pk"]

    def __str__(self) -> str:
        return f"{self.user} on {self.user_agent or 'an unknown browser'}"
