"""Cached embeddings, by model and text."""

from django.db import models


class EmbeddingModel(models.Model):
    """A model, identified by its vectors and not only by its server's facts."""

    fingerprint = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=300)
    dimensions = models.PositiveIntegerField()
    canary = models.BinaryField(
        null=True, help_text="Vectors of two fixed texts, float32, little-endian: see canary.py."
    )
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Embedding(models.Model):
    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="embeddings")
    text_hash = models.BinaryField(max_length=32, help_text="SHA-256 of the text in UTF-8.")
    vector = models.BinaryField(help_text="Unit length, float32, little-endian.")
    expires = models.DateField(
        null=True, db_index=True, help_text="Deleted from that day on: see retention.py."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "text_hash"], name="embedding_once")
        ]

    def __str__(self) -> str:
        return f"{self.model}: {bytes(self.text_hash).hex()[:12]}"
