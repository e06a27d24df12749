"""What a pasted configuration means, what is wrong with it and what it will need (pure)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import FlagTable
from apps.tuning.importing.settings import Setting, Settings, read_settings
from apps.tuning.importing.written import WrittenServer, read_servers
from apps.tuning.planner.flag_warnings import warnings_for
from apps.tuning.planner.flags import Flag
from apps.tuning.planner.kv_cache import DEFAULT_UBATCH, KvCache
from apps.tuning.planner.memory import ExtraFiles, MemoryPart, memory_parts, total_bytes
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.plan_text import describe_cache
from apps.tuning.planner.uses import Use

# What llama-server does when --parallel is not given: so many slots that share one pool.
AUTO_SLOTS = 4
MAX_SLOTS = 256
ShapeOf = Callable[[str | None], ModelShape | None]
UNKNOWN_MODEL = ModelShape("unknown", ())


@dataclass(frozen=True, slots=True)
class ImportedServer:
    name: str
    settings: tuple[Setting, ...]
    model: str | None
    """Path of its file."""
    cache: KvCache | None
    """None: its context is the model's own, and the model is not known."""
    problems: tuple[str, ...]
    """It does not start, or a flag does nothing, until they are mended."""
    warnings: tuple[str, ...]
    parts: tuple[MemoryPart, ...]
    """Empty: the model is not known."""

    @property
    def starts(self) -> bool:
        return not self.problems

    @property
    def slots(self) -> str:
        if self.cache is None:
            return "As many tokens as the model was trained for"
        return describe_cache(self.cache).capitalize()

    @property
    def needed_bytes(self) -> int:
        return total_bytes(self.parts)


def import_servers(
    text: str,
    table: FlagTable,
    *,
    shape_of: ShapeOf | None = None,
    use: Use = Use.CHAT,
    runtime_bytes: int = 0,
) -> list[ImportedServer]:
    """Read every server of a command, a router's INI or a llama-swap YAML.

    Args:
        shape_of: of the model with this path, where it is known.
        use: what the servers are for; a server with --embeddings is for embeddings.
        runtime_bytes: what the GPU's driver takes.

    Raises:
        PlanError: the text is none of these, or damaged.
    """
    return [
        _imported(server, read_settings(server, table), shape_of, use, runtime_bytes)
        for server in read_servers(text)
    ]


def _imported(
    server: WrittenServer,
    settings: Settings,
    shape_of: ShapeOf | None,
    use: Use,
    runtime_bytes: int,
) -> ImportedServer:
    shape: ModelShape | None = None
    problems = [setting.problem for setting in settings.all if setting.problem]
    cache: KvCache | None = None
    parts: tuple[MemoryPart, ...] = ()
    try:
        shape = shape_of(settings.value("--model")) if shape_of else None
        cache = cache_of(settings, shape)
        if shape is not None and cache is not None:
            # Older builds reserve them for chat as well; with a small micro-batch they are few.
            each_token = settings.has("--embeddings") or cache.ubatch <= DEFAULT_UBATCH
            extra = ExtraFiles(runtime=runtime_bytes, logits_of_each_token=each_token)
            parts = memory_parts(shape, cache, extra)
    except PlanError as error:
        problems.append(str(error))
    return ImportedServer(
        server.name,
        settings.all,
        settings.value("--model"),
        cache,
        tuple(problems),
        tuple(_warnings(settings, cache, shape, use)),
        parts,
    )


def cache_of(settings: Settings, shape: ModelShape | None) -> KvCache | None:
    """The KV cache that llama-server makes of these arguments; None: its size is not known.

    Raises:
        PlanError: so many slots are not possible.
    """
    given = settings.number("--parallel") or 0
    slots = given if given > 0 else AUTO_SLOTS
    if slots > MAX_SLOTS:
        raise PlanError(f"--parallel {slots} is more than the {MAX_SLOTS} slots that are possible.")
    per_slot = settings.number("--kv-unified-per-slot") or 0
    context = max(settings.number("--ctx-size") or 0, 0)
    context = context or slots * per_slot or (shape.context if shape and shape.context else 0)
    if not context:
        return None
    written = settings.last_name("--kv-unified")
    # Slots that the server chooses itself share one pool, whatever is written.
    unified = given <= 0 or (written is not None and "-no-" not in written)
    return KvCache(
        context,
        slots=slots,
        unified=unified,
        key_type=settings.value("--cache-type-k") or "f16",
        value_type=settings.value("--cache-type-v") or "f16",
        ubatch=max(settings.number("--ubatch-size") or DEFAULT_UBATCH, 1),
    )


def _warnings(
    settings: Settings, cache: KvCache | None, shape: ModelShape | None, use: Use
) -> Iterator[str]:
    if settings.has("--n-gpu-layers") and (settings.value("--n-gpu-layers") or "").isdigit():
        yield (
            "--gpu-layers with a number: llama-server no longer fits the layers to the memory by"
            " itself. Leave it out, or write “auto”."
        )
    if cache is None:
        return
    use = Use.EMBEDDINGS if settings.has("--embeddings") else use
    flags = [
        Flag(setting.argument.name, setting.value, "")
        for setting in settings.all
        if setting.argument
    ]
    yield from warnings_for(flags, cache, shape or UNKNOWN_MODEL, use)
