"""The default server and model of each use."""

from django.db import models

from apps.servers.models.choices import Use
from apps.servers.models.server import Server


class DefaultServer(models.Model):
    """The server and model that a use gets when nothing else was chosen."""

    use = models.CharField(max_length=20, choices=Use, unique=True)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="defaults")
    model = models.CharField(
        max_length=300, blank=True, help_text="Empty: the first that suits the use."
    )
    fallback = models.ForeignKey(
        Server,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Used while the server does not answer.",
    )
    fallback_model = models.CharField(
        max_length=300, blank=True, default="", help_text="Empty: the first that suits the use."
    )

    def __str__(self) -> str:
        return f"{self.use}: {self.server}"
