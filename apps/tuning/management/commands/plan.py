from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.core.management.piped_command import PipedCommand
from apps.tuning.errors import PlanError
from apps.tuning.import_files import installed_table, read_configuration
from apps.tuning.importing.import_text import imported_lines
from apps.tuning.importing.imported import import_servers
from apps.tuning.model_file import model_bytes, read_model_file
from apps.tuning.named_model import files_of, read_named_model
from apps.tuning.planner.configurations import FORMATS, planned_server, write_configuration
from apps.tuning.planner.flag_warnings import warnings_for
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import HARDWARE, Hardware, find_hardware, unnamed_hardware
from apps.tuning.planner.kv_cache import TYPES
from apps.tuning.planner.memory import ExtraFiles
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.plan import Plan, PlanRequest, make_plan
from apps.tuning.planner.plan_text import plan_lines, reason_lines, stack_lines
from apps.tuning.planner.stack.presets import PRESETS, plan_preset
from apps.tuning.planner.stack.stack_plan import (
    Member,
    StackPlan,
    plan_stack,
    stack_warnings,
    write_stack,
)
from apps.tuning.planner.uses import Use, find_use


def _add_machine(parser: CommandParser) -> None:
    """Add the hardware, and how a model is to use it."""
    parser.add_argument("--gpu", help=f"one of: {', '.join(HARDWARE)}")
    parser.add_argument("--gpus", type=int, default=1, help="how many of them (default: 1)")
    parser.add_argument("--memory", type=float, help="GiB, if it differs from the table")
    parser.add_argument("--use", choices=list(Use), default=Use.CHAT, type=str)
    parser.add_argument("--slots", type=int, help="answers at the same time")
    parser.add_argument("--context", type=int, help="tokens of one slot")
    parser.add_argument("--cache-type", choices=list(TYPES), help="type of the KV cache")


class Command(PipedCommand):
    help = "Say how much memory a model needs, what fits, and how to start llama-server with it."
    requires_system_checks = []  # they import every page, which takes seconds

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "model",
            nargs="?",
            help="GGUF file; of several parts, the first; or owner/repo:file.gguf on Hugging Face",
        )
        parser.add_argument(
            "--import",
            dest="configuration",
            metavar="FILE",
            help="say what a command, router INI or llama-swap YAML means and needs; - reads stdin",
        )
        parser.add_argument(
            "--llama-server",
            metavar="PROGRAM",
            help="with --import: the build whose arguments count, in place of the tested one",
        )
        _add_machine(parser)
        parser.add_argument("--mmproj", help="GGUF file of the vision projector")
        parser.add_argument("--draft", help="GGUF file of a draft model")
        parser.add_argument("--api-key-file", help="file with one API key a line")
        parser.add_argument(
            "--with",
            dest="others",
            action="append",
            default=[],
            metavar="FILE=USE",
            help="another model that stays in memory too; may be repeated",
        )
        parser.add_argument(
            "--preset", choices=list(PRESETS), help="chat, embeddings and decisions for a memory"
        )
        parser.add_argument(
            "--format",
            choices=list(FORMATS),
            help="print only this: nothing else, so that it can be written into a file",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["configuration"]:
                self.stdout.write("\n".join(_imported(options)))
                return
            if options["preset"]:
                self._print_stack(plan_preset(options["preset"]), options["format"])
                return
            if not options["model"]:
                raise PlanError("Name a model file, or a configuration with --import FILE.")
            if options["others"]:
                stack = plan_stack(_members(options), _hardware(options))
                self._print_stack(stack, options["format"])
                return
            plan = _plan(options)
            files = files_of(
                options["model"], options["mmproj"], options["draft"], options["api_key_file"]
            )
            if options["format"]:
                self.stdout.write(write_configuration(options["format"], plan, files).rstrip("\n"))
            else:
                self._print(plan, files)
        except PlanError as error:
            raise CommandError(str(error)) from error

    def _print_stack(self, stack: StackPlan, format_name: str | None) -> None:
        if format_name:
            self.stdout.write(write_stack(format_name, stack).rstrip("\n"))
            return
        self.stdout.write("\n".join(stack_lines(stack)))
        self.stdout.write(f"\n{write_stack('command', stack)}\n")
        self.stdout.write("\n".join(f"Warning: {text}" for text in stack_warnings(stack)))

    def _print(self, plan: Plan, files: Files) -> None:
        server = planned_server(plan, files)
        warnings = warnings_for(server.flags, plan.cache, plan.request.shape, plan.request.use)
        self.stdout.write("\n".join(plan_lines(plan)))
        self.stdout.write(f"\n{write_configuration('command', plan, files)}\n")
        self.stdout.write("\n".join(reason_lines(server.flags, warnings)))


def _plan(options: dict[str, Any]) -> Plan:
    return make_plan(
        PlanRequest(
            shape=read_named_model(options["model"]),
            hardware=_hardware(options),
            use=Use(options["use"]),
            slots=options["slots"],
            context=options["context"],
            cache_type=options["cache_type"],
            extra=ExtraFiles(
                projector=model_bytes(Path(options["mmproj"])) if options["mmproj"] else 0,
                draft=model_bytes(Path(options["draft"])) if options["draft"] else 0,
            ),
        )
    )


def _members(options: dict[str, Any]) -> list[Member]:
    pairs = [(options["model"], options["use"])]
    for text in options["others"]:
        path, _, use = text.rpartition("=")
        if not path:
            raise PlanError(f"--with {text}: write FILE=USE, such as embed.gguf=embeddings.")
        pairs.append((path, use))
    return [Member(read_named_model(path), find_use(use), files_of(path)) for path, use in pairs]


def _imported(options: dict[str, Any]) -> Iterator[str]:
    hardware = None
    if options["gpu"] or options["memory"] is not None:
        hardware = _hardware(options)
    shape = read_named_model(options["model"]) if options["model"] else None

    def shape_of(path: str | None) -> ModelShape | None:
        if shape is None and path is not None and Path(path).is_file():
            return read_model_file(Path(path))
        return shape

    servers = import_servers(
        read_configuration(options["configuration"]),
        installed_table(options["llama_server"]),
        shape_of=shape_of,
        use=Use(options["use"]),
        runtime_bytes=hardware.runtime_bytes if hardware else 0,
    )
    return imported_lines(servers, hardware)


def _hardware(options: dict[str, Any]) -> Hardware:
    if options["gpu"]:
        return find_hardware(options["gpu"], memory_gib=options["memory"], count=options["gpus"])
    if options["memory"] is None:
        raise PlanError("Name the hardware with --gpu NAME, or its memory with --memory GiB.")
    return unnamed_hardware(options["memory"], count=options["gpus"])
