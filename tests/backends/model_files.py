"""The models that the programs serve: names, and half a megabyte of random weights each."""

from dataclasses import dataclass
from pathlib import Path

from tests.tiny_gguf import THINKING_TEMPLATE, write_tiny_gguf, write_tiny_projector

BROKEN_BYTES = 20_000


@dataclass(frozen=True)
class ModelFiles:
    """`folder` is what a router takes as --models-dir."""

    folder: Path

    def path(self, name: str) -> Path:
        nested = self.folder / name / f"{name}.gguf"
        return nested if nested.exists() else self.folder / f"{name}.gguf"

    @property
    def projector(self) -> Path:
        return self.folder / "seeing" / "mmproj-seeing.gguf"

    @property
    def embeddings(self) -> Path:
        return self.folder.parent / "embed.gguf"


def write_models(folder: Path) -> ModelFiles:
    """Write them; the embedding model lies beside the folder, because it needs a flag."""
    models = folder / "models"
    (models / "seeing").mkdir(parents=True)
    for name in ("alpha", "beta"):
        write_tiny_gguf(models / f"{name}.gguf")
    write_tiny_gguf(models / "thinking.gguf", template=THINKING_TEMPLATE)
    write_tiny_gguf(models / "seeing" / "seeing.gguf")
    found = ModelFiles(models)
    write_tiny_projector(found.projector)
    write_tiny_gguf(found.embeddings, embeddings=True)
    (models / "broken.gguf").write_bytes(found.path("alpha").read_bytes()[:BROKEN_BYTES])
    return found
