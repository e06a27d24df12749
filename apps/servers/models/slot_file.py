"""The files in which servers keep the KV cache of prompts, and how restoring them went."""

from django.db import models

from apps.servers.models.server import Server


class SlotFile(models.Model):
    """A file of a server with the KV cache of a prompt's beginning.

    A server overwrites files and never deletes one. So an evicted file is a free name until
    another cache, or an empty one, is written over it.
    """

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="slot_files")
    name = models.CharField(max_length=80, help_text="In the server's folder.")
    model = models.CharField(max_length=300)
    cache_key = models.CharField(max_length=16, help_text="See `ModelFacts.cache_key`.")
    prefix = models.CharField(
        max_length=64,
        blank=True,
        help_text="SHA-256 of the messages it begins with; empty: the name is free.",
    )
    tokens = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes on the server's disk.")
    seconds = models.FloatField(
        null=True, blank=True, help_text="That computing its tokens took; empty: not measured."
    )
    source = models.CharField(
        max_length=80, blank=True, help_text="What it is from, to drop it with: “conversation:12”."
    )
    used_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="slot_file_name"),
        ]
        indexes = [models.Index(fields=["server", "cache_key", "prefix"], name="slot_file_prefix")]

    def __str__(self) -> str:
        return self.name


class SlotRestores(models.Model):
    """How often files were restored for one model of a server, and with what result."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="slot_restores")
    cache_key = models.CharField(max_length=16, help_text="See `ModelFacts.cache_key`.")
    model = models.CharField(max_length=300)
    count = models.PositiveIntegerField(default=0, help_text="Restores that the cache showed.")
    seconds_saved = models.FloatField(default=0.0)
    failed_in_row = models.PositiveIntegerField(default=0)
    process = models.CharField(
        max_length=100, blank=True, help_text="That failed last, see `ServerFacts.process`."
    )
    reason = models.CharField(max_length=300, blank=True, help_text="Of the last failure.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["server", "cache_key"], name="slot_restores_of_model"),
        ]

    def __str__(self) -> str:
        return f"{self.server}, {self.model}"
