"""The form of the page “Plan a server”: a file or typed figures, hardware and use."""

from pathlib import PurePath
from typing import Any

from django import forms

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import ImportedServer, import_servers
from apps.tuning.importing.written import MAX_CHARACTERS
from apps.tuning.named_model import files_of, read_named_model
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import (
    GIB,
    HARDWARE,
    Hardware,
    Kind,
    find_hardware,
    unnamed_hardware,
)
from apps.tuning.planner.memory import CACHE_TYPES
from apps.tuning.planner.model.gguf_header import read_header
from apps.tuning.planner.model.model_shape import Layer, ModelShape, read_shape
from apps.tuning.planner.plan import PlanRequest
from apps.tuning.planner.stack.presets import PRESETS, plan_preset
from apps.tuning.planner.stack.stack_plan import StackPlan
from apps.tuning.planner.uses import Use

TITLES = {use: use.value.capitalize() for use in Use}
FIGURES = ("layers", "kv_heads", "key_length", "weights")


def _hardware_choices() -> list[Any]:
    groups = [
        (kind.value, [(name, name) for name, known in HARDWARE.items() if known.kind is kind])
        for kind in Kind
    ]
    return [("", "Another GPU"), *groups]


class PlanForm(forms.Form):
    """Becomes a request for a plan, or imported servers; fields that are empty are chosen."""

    imported: list[ImportedServer] | None = None
    """What the pasted configuration means; None: none was pasted."""
    stack: StackPlan | None = None
    """Of the preset; None: none was chosen."""
    plan_hardware: Hardware

    preset = forms.ChoiceField(
        required=False,
        choices=[("", "None: one model of yours"), *((name, name) for name in PRESETS)],
        label="Preset",
        help_text="Chat, embeddings and decisions in one memory.",
    )
    file = forms.FileField(
        required=False,
        allow_empty_file=True,
        label="Model file (GGUF)",
        help_text="Only its first 9 MB are sent.",
        widget=forms.FileInput(attrs={"data-header-only": "", "accept": ".gguf"}),
    )
    model = forms.CharField(
        required=False,
        max_length=1000,
        label="Or a model by name",
        help_text="A path on the machine of Workbench, or owner/repo:file.gguf on Hugging Face.",
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    file_bytes = forms.IntegerField(
        required=False, min_value=0, max_value=2**50, widget=forms.HiddenInput
    )
    layers = forms.IntegerField(required=False, min_value=1, max_value=1024, label="Layers")
    kv_heads = forms.IntegerField(required=False, min_value=1, max_value=4096, label="KV heads")
    key_length = forms.IntegerField(
        required=False, min_value=1, max_value=65_536, label="Values per head"
    )
    weights = forms.FloatField(
        required=False, min_value=0.001, max_value=16_384, label="Weights (GiB)"
    )
    trained = forms.IntegerField(
        required=False, min_value=256, max_value=2**24, label="Trained context (tokens)"
    )
    configuration = forms.CharField(
        required=False,
        max_length=MAX_CHARACTERS,
        label="Configuration to check",
        help_text="A llama-server command, a router’s INI or a llama-swap YAML.",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )
    hardware = forms.ChoiceField(
        required=False, choices=_hardware_choices, initial="RTX 4060 Ti", label="Hardware"
    )
    memory = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=16_384,
        label="Memory (GiB)",
        widget=forms.NumberInput(attrs={"placeholder": "From the table", "step": "any"}),
    )
    gpus = forms.IntegerField(required=False, min_value=1, max_value=64, initial=1, label="Count")
    use = forms.ChoiceField(choices=[(use.value, TITLES[use]) for use in Use], label="Use")
    slots = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=256,
        label="Slots",
        widget=forms.NumberInput(attrs={"placeholder": "By use"}),
    )
    context = forms.IntegerField(
        required=False,
        min_value=256,
        max_value=2**24,
        label="Context per slot (tokens)",
        widget=forms.NumberInput(attrs={"placeholder": "By use"}),
    )
    cache_type = forms.ChoiceField(
        required=False,
        choices=[("", "Automatic"), *((name, name) for name in CACHE_TYPES)],
        label="KV cache",
    )

    def __init__(self, *args: Any, is_staff: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_staff:  # paths of this machine are not everybody's business
            del self.fields["model"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                if cleaned["preset"]:
                    self.stack = plan_preset(cleaned["preset"])
                    return cleaned
                self.plan_hardware = _hardware(cleaned)
                if cleaned["configuration"].strip():
                    self.imported = self._import(cleaned)
                    return cleaned
                self.plan_request = self._request(cleaned)
                self.model_files = _files(cleaned)
            except PlanError as error:
                raise forms.ValidationError(str(error)) from error
        return cleaned

    def _request(self, cleaned: dict[str, Any]) -> PlanRequest:
        return PlanRequest(
            shape=_shape(cleaned),
            hardware=self.plan_hardware,
            use=Use(cleaned["use"]),
            slots=cleaned["slots"],
            context=cleaned["context"],
            cache_type=cleaned["cache_type"] or None,
        )

    def _import(self, cleaned: dict[str, Any]) -> list[ImportedServer]:
        given = (
            cleaned["file"]
            or cleaned.get("model")
            or any(cleaned[name] is not None for name in FIGURES)
        )
        shape = _shape(cleaned) if given else None
        return import_servers(
            cleaned["configuration"],
            shipped_table(),
            shape_of=lambda _: shape,
            use=Use(cleaned["use"]),
            runtime_bytes=self.plan_hardware.runtime_bytes,
        )


def _hardware(cleaned: dict[str, Any]) -> Hardware:
    count, memory = cleaned["gpus"] or 1, cleaned["memory"]
    if cleaned["hardware"]:
        return find_hardware(cleaned["hardware"], memory_gib=memory, count=count)
    if memory is None:
        raise PlanError("Enter the memory of the GPU.")
    return unnamed_hardware(memory, count=count)


def _files(cleaned: dict[str, Any]) -> Files:
    if cleaned["file"]:
        return Files(PurePath(cleaned["file"].name).name)
    return files_of(cleaned.get("model") or "model.gguf")


def _shape(cleaned: dict[str, Any]) -> ModelShape:
    """The model of the file, of the name, or of the typed figures where there is neither."""
    if cleaned["file"]:
        header = read_header(cleaned["file"].read())
        return read_shape(header, file_bytes=cleaned["file_bytes"])
    if cleaned.get("model"):
        return read_named_model(cleaned["model"])
    if any(cleaned[name] is None for name in FIGURES):
        raise PlanError("Choose a model file, or enter all of its figures.")
    length, weights = cleaned["key_length"], int(cleaned["weights"] * GIB)
    return ModelShape(
        "typed",
        (Layer(cleaned["kv_heads"], length, length),) * cleaned["layers"],
        context=cleaned["trained"],
        weight_bytes=weights,
        read_bytes=weights,
    )
