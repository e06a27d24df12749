"""The flags of llama-server that a plan asks for, each with its reason (pure)."""

import re
from dataclasses import dataclass
from pathlib import PurePath

from apps.tuning.errors import PlanError
from apps.tuning.planner.hardware import Kind
from apps.tuning.planner.kv_cache import DEFAULT_UBATCH
from apps.tuning.planner.plan import Plan
from apps.tuning.planner.uses import Use

DEFAULT_BATCH = 2048


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    """The long name, as `--help` has it."""
    value: str | None
    why: str
    depends_on_build: bool = False
    """True: builds of some years do not know it."""

    @property
    def words(self) -> list[str]:
        return [self.name] if self.value is None else [self.name, self.value]


@dataclass(frozen=True, slots=True)
class Files:
    """Paths as the server sees them."""

    model: str
    projector: str | None = None
    draft: str | None = None
    keys: str | None = None
    """A file with one API key a line."""

    def __post_init__(self) -> None:
        for path in (self.model, self.projector, self.draft, self.keys):
            if path is not None and (not path or not path.isprintable() or "${" in path):
                raise PlanError(f"The path {path!r} cannot stand in a command: rename the file.")

    @property
    def name(self) -> str:
        """The name in requests: the file's name with plain characters alone."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePath(self.model).stem)
        return plain.strip("-") or "model"


def flags_of(plan: Plan, files: Files) -> tuple[Flag, ...]:
    """All flags but address and port, in the order in which people read them."""
    return (
        Flag("--model", files.model, "The model."),
        Flag("--alias", files.name, "The name that requests give, whatever the file is called."),
        *_files(files),
        *_slots(plan),
        *_cache(plan),
        *_batches(plan),
        *_use(plan),
        Flag("--metrics", None, "Lets the workbench and Prometheus see speed and queue."),
        *_keys(files),
    )


def _files(files: Files) -> list[Flag]:
    found = []
    if files.projector:
        found.append(Flag("--mmproj", files.projector, "Lets the model see pictures."))
    if files.draft:
        found.append(
            Flag("--model-draft", files.draft, "A small model drafts, the large one checks.")
        )
    return found


def _slots(plan: Plan) -> list[Flag]:
    cache, needs = plan.cache, plan.request.needs
    slots = "1 slot" if cache.slots == 1 else f"{cache.slots} slots"
    share = f"{slots} of {plan.slot_context:,} tokens"
    if cache.unified:
        share = f"A pool of {cache.context:,} tokens for {slots}"
    found = [
        Flag("--ctx-size", str(cache.context), f"{share}. Tokens of all slots together."),
        Flag("--parallel", str(cache.slots), f"{slots} {needs.why}."),
    ]
    if cache.unified:
        why = "One pool: a long history takes what short ones leave."
        found.append(Flag("--kv-unified", None, why, depends_on_build=True))
    return found


def _cache(plan: Plan) -> list[Flag]:
    cache = plan.cache
    if cache.key_type == "f16" and cache.value_type == "f16":
        return []
    why = "A smaller KV cache: more context in the same memory, at a small loss of quality."
    return [
        Flag("--cache-type-k", cache.key_type, why),
        Flag("--cache-type-v", cache.value_type, "As for the keys; needs flash attention (auto)."),
    ]


def _batches(plan: Plan) -> list[Flag]:
    ubatch = plan.cache.ubatch
    if ubatch == DEFAULT_UBATCH:
        return []
    why = "A whole text in one micro-batch: longer ones would be refused."
    found = [Flag("--ubatch-size", str(ubatch), why)]
    if ubatch > DEFAULT_BATCH:
        found.insert(0, Flag("--batch-size", str(ubatch), "Not less than the micro-batch."))
    return found


def _use(plan: Plan) -> list[Flag]:
    found = []
    if plan.request.use is Use.EMBEDDINGS:
        found.append(Flag("--embeddings", None, "Vectors in place of answers."))
    if plan.request.hardware.kind is Kind.CPU:
        found.append(Flag("--gpu-layers", "0", "Nothing is sent to a GPU."))
    return found


def _keys(files: Files) -> list[Flag]:
    if files.keys is None:
        return []
    return [Flag("--api-key-file", files.keys, "Nobody without one of these keys is answered.")]
