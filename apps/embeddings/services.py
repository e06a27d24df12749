"""The services of this room for others."""

from apps.embeddings.arrays import empty_array, take_rows
from apps.embeddings.cache import (
    Embedder,
    EmbedStats,
    Progress,
    embed,
    embed_texts,
    identify,
    server_fingerprint,
)
from apps.embeddings.canary import batch_difference
from apps.embeddings.errors import OtherModel, TextsTooLarge, TooFewDimensions
from apps.embeddings.preparation import (
    LONG_TEXTS,
    LongTexts,
    Preparation,
    PreparedVectors,
    embed_prepared,
)
from apps.embeddings.retention import delete_newer_than, newest_key
from apps.embeddings.sender import Vectors

# What other rooms use of this one.
__all__ = [
    "LONG_TEXTS",
    "EmbedStats",
    "Embedder",
    "LongTexts",
    "OtherModel",
    "Preparation",
    "PreparedVectors",
    "Progress",
    "TextsTooLarge",
    "TooFewDimensions",
    "Vectors",
    "batch_difference",
    "delete_newer_than",
    "embed",
    "embed_prepared",
    "embed_texts",
    "empty_array",
    "identify",
    "newest_key",
    "server_fingerprint",
    "take_rows",
]
