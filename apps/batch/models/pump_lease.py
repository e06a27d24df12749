"""The lease of a server's pump."""

from django.db import models

from apps.servers.models import Server


class PumpLease(models.Model):
    """The right to work on a server's rows. A holder of an older token is out."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="pump_lease")
    token = models.BigIntegerField(default=0)
    until = models.DateTimeField()
    heartbeat = models.DateTimeField()
    holder = models.CharField(
        max_length=200, blank=True, default="", help_text="Process, see `process_identity`."
    )

    def __str__(self) -> str:
        return f"Pump of {self.server_id}, token {self.token}"
