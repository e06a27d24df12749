"""Prepares our llama.cpp servers from the settings: which models, with which llama.cpp.

Twice for a model that has to be downloaded: without `tell` before the download, where its file
cannot be checked yet, and with `tell`, which downloads, in the process that becomes the server.
"""

from apps.embedded.errors import StartError
from apps.embedded.llama_command import Llama, preset
from apps.embedded.llama_program import LlamaProgram, find_program
from apps.embedded.model_files import find
from apps.embedded.model_files.download import Tell
from apps.embedded.model_files.memory import check_memory, models_that_fit
from apps.embedded.options import Options

MAX_SLOTS = 256


def chat_llama(options: Options, *, port: int, tell: Tell | None = None) -> Llama:
    """Return the chat server.

    Raises:
        StartError: a setting or a model is wrong, or a model could not be downloaded.
    """
    program = find_program(options.llama_server)
    chosen = [name.strip() for name in options.chat_model.split(",")]
    check_program(program, options, several=len(chosen) > 1)
    found = [
        find.chat_model(name, root=options.root, folder=options.models, tell=tell)
        for name in chosen
    ]
    models = tuple(model.path for model in found)
    missing = _missing(found)
    check_memory(program, [path for path in models if path.exists()])
    llama = Llama(
        models=models,
        port=port,
        context_per_slot=options.chat_context or min(model.context_per_slot for model in found),
        slots=options.chat_slots,
        program=program,
        flags=options.chat_flags,
        models_at_once=1 if missing else models_that_fit(program, models),
        preset_file=options.data / "models.ini" if len(models) > 1 else None,
        missing=missing,
    )
    if llama.preset_file is not None:
        llama.preset_file.write_text(preset(models), encoding="utf-8")
    return llama


def embeddings_llama(options: Options, *, port: int, tell: Tell | None = None) -> Llama:
    """Return the embedding server.

    Raises:
        StartError: the model is wrong, or could not be downloaded.
    """
    model = find.embed_model(options.embed_model, folder=options.models, tell=tell)
    # One slot: llama.cpp computes what several hold together, and a text's vector then depends on
    # what happened to be beside it, by up to 1.5e-4 a number. Costs a third of the speed.
    return Llama(
        models=(model.path,),
        port=port,
        context_per_slot=model.context_per_slot,
        embeddings=True,
        missing=_missing([model]),
    )


def check_program(program: LlamaProgram, options: Options, *, several: bool) -> None:
    """Refuse what the wheel's llama.cpp cannot do.

    Raises:
        StartError: a `llama-server` is needed, and there is none.
    """
    wanted = "Several models (WORKBENCH_CHAT_MODEL)" if several else ""
    if options.chat_flags:
        wanted = wanted or "The flags in WORKBENCH_CHAT_FLAGS"
    if wanted and program.path is None:
        raise StartError(
            f"{wanted} need llama.cpp's own llama-server: put it on the PATH, or name it with"
            " WORKBENCH_LLAMA_SERVER."
        )
    if not 1 <= options.chat_slots <= MAX_SLOTS:
        raise StartError(f"WORKBENCH_CHAT_SLOTS must be from 1 to {MAX_SLOTS}.")
    if options.chat_context < 0:
        raise StartError("WORKBENCH_CHAT_CONTEXT must be a number of tokens per slot.")


def _missing(models: list[find.ModelFile]) -> tuple[str, ...]:
    return tuple(model.name for model in models if not model.path.exists())
