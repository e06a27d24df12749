"""Writes the command lines of our llama.cpp servers: the wheel's, a `llama-server`, a router."""

import configparser
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from apps.embedded.llama_program import LlamaProgram
from apps.embedded.options import LOOPBACK

# A conversation otherwise takes over the slot of any other with the same system prompt.
SLOT_SIMILARITY = "0.5"


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A llama.cpp server of our own. Of several models it loads the one that is asked for."""

    models: tuple[Path, ...]
    port: int
    context_per_slot: int
    slots: int = 1
    embeddings: bool = False
    program: LlamaProgram = field(default_factory=LlamaProgram)
    flags: tuple[str, ...] = ()
    """Of `llama-server`; they win over ours."""
    models_at_once: int = 1
    preset_file: Path | None = None
    """Where the models are listed for a router; None: there is one model."""
    missing: tuple[str, ...] = ()
    """Names of models that have to be downloaded first."""

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/v1"

    @property
    def shares_cache(self) -> bool | None:
        """True if all slots share one KV cache; None: the flags decide it."""
        names = {flag.partition("=")[0] for flag in self.flags}
        told = {"-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified", "-np", "--parallel"}
        return None if names & told else False


def command(llama: Llama, key_file: Path) -> Sequence[str | Path]:
    if llama.missing:
        server = "embeddings" if llama.embeddings else "chat"
        return [
            *(sys.executable, "-m", "apps.embedded.fetch_and_serve"),
            *(server, "--port", str(llama.port)),
        ]
    if llama.program.path is None:
        return _wheel(llama, key_file)
    return [llama.program.path, *_llama_server(llama, key_file), *llama.flags]


def _wheel(llama: Llama, key_file: Path) -> list[str | Path]:
    (model,) = llama.models
    return [
        *(sys.executable, "-m", "apps.embedded.llama_server"),
        *("--model", model, "--alias", model.stem),
        *("--port", str(llama.port), "--api-key-file", key_file),
        *("--context-per-slot", str(llama.context_per_slot)),
        *(["--embeddings"] if llama.embeddings else []),
        *("--parallel", str(llama.slots)),
    ]


def _llama_server(llama: Llama, key_file: Path) -> list[str | Path]:
    """Flags that every build of the last years knows, and of a router for several models."""
    if llama.preset_file is None:
        (model,) = llama.models
        which: list[str | Path] = ["--model", model, "--alias", model.stem]
    else:
        which = ["--models-preset", llama.preset_file, "--models-max", str(llama.models_at_once)]
    return [
        *which,
        *("--host", LOOPBACK, "--port", str(llama.port), "--api-key-file", key_file),
        # Explicit slots: each owns its share of the context.
        *("-np", str(llama.slots), "-c", str(llama.slots * llama.context_per_slot)),
        *("--slot-prompt-similarity", SLOT_SIMILARITY, "--metrics", "--no-webui"),
    ]


def preset(models: Sequence[Path]) -> str:
    """The router's INI file: a section for each model, named as people see it."""
    names = configparser.ConfigParser(interpolation=None)
    for name, model in zip(model_names(models), models, strict=True):
        names[name] = {"model": str(model)}
    text = io.StringIO()
    names.write(text)
    return text.getvalue()


def model_names(models: Sequence[Path]) -> list[str]:
    """The file's names, with their folder where two are the same."""
    stems = [model.stem for model in models]
    return [
        stem if stems.count(stem) == 1 else f"{model.parent.name}/{stem}"
        for stem, model in zip(stems, models, strict=True)
    ]
