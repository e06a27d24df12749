"""A chat model on the same test rows, beside the classifier."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.batch.errors import WrongState
from apps.batch.services import cancel_batch, delete_batch, wake_pump
from apps.classifiers.errors import NoRowResults
from apps.classifiers.models import LARGE_FIELDS, ChatTest, Run
from apps.classifiers.prediction import chat_labels, chat_test_results, chat_tests
from apps.classifiers.views.run.run_page import run_page
from apps.llm.thinking import parse_thinking, thinking_choices
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import can_generate

SHOWN = 10
MAX_INSTRUCTIONS = 10_000  # characters
MAX_DESCRIPTIONS = 50_000
LARGE = [f"run__{name}" for name in LARGE_FIELDS if name != "per_class"]


class ChatTestForm(forms.Form):
    target = forms.ChoiceField(label="Chat model")
    shots = forms.TypedChoiceField(
        label="Examples in the prompt",
        coerce=int,
        choices=[
            (0, "None (zero-shot)"),
            (1, "1 per label"),
            (3, "3 per label"),
            (5, "5 per label"),
        ],
        help_text="Training rows, from clear cases to borderline ones.",
    )
    rows = forms.IntegerField(
        label="Test rows", min_value=1, max_value=chat_tests.MOST_ROWS, initial=100
    )

    thinking = forms.TypedChoiceField(
        label="Thinking",
        coerce=parse_thinking,
        empty_value="off",
        required=False,
        choices=thinking_choices("", first="off"),
        help_text="Thinking takes longer. Its tokens count as tokens per row.",
    )
    instructions = forms.CharField(
        label="Instructions",
        required=False,
        max_length=MAX_INSTRUCTIONS,
        initial=chat_labels.INSTRUCTIONS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Labels and examples follow them. The server allows only a label as the answer.",
    )
    descriptions = forms.CharField(
        label="Label descriptions",
        required=False,
        max_length=MAX_DESCRIPTIONS,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "label: what it means"}),
        help_text="One per line, for labels that do not explain themselves.",
    )

    def __init__(self, *args: Any, labels: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.labels = labels
        field = self.fields["target"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = target_choices()

    def clean_descriptions(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in filter(None, map(str.strip, self.cleaned_data["descriptions"].splitlines())):
            # A label may have a colon in it: the longest that fits counts.
            fitting = [label for label in self.labels if line.startswith(f"{label}:")]
            if not fitting:
                known = ", ".join(self.labels[:20])
                raise forms.ValidationError(f"No label at “{line[:60]}”. Labels: {known}.")
            label = max(fitting, key=len)
            found[label] = line.removeprefix(f"{label}:").strip()
        return found


def target_choices() -> list[tuple[str, str]]:
    """Every chat model of every server, the one that is set for generating first."""
    default = DefaultServer.objects.filter(use=Use.GENERATION).first()
    found: list[tuple[str, str]] = []
    for server in Server.objects.prefetch_related("defaults"):
        names = [model.id for model in server.model_facts if can_generate(server, model)]
        if default is not None and default.server_id == server.pk:
            chosen = default.model if default.model in names else next(iter(names), "")
            found.insert(0, (f"{server.pk}:{chosen}", f"{server.name}: {chosen or 'its model'}"))
            names = [name for name in names if name != chosen]
        found += [(f"{server.pk}:{name}", f"{server.name}: {name}") for name in names]
    return found


@require_http_methods(["GET", "HEAD", "POST"])
def chat_tests_page(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "ship", "chat")
    run: Run | None = context["run"]
    if run is None:
        return render(request, "classifiers/evaluation/chat_models.html", context)
    labels = [entry["label"] for entry in run.per_class]
    form = ChatTestForm(request.POST or None, labels=labels)
    status = 200
    if request.method == "POST":
        if form.is_valid() and _start(run, form):
            return redirect("classifiers:chat_tests", pk)
        status = 422
    context |= {"form": form} | _results(pk)
    return render(request, "classifiers/evaluation/chat_models.html", context, status=status)


def _start(run: Run, form: ChatTestForm) -> bool:
    number, _, model = form.cleaned_data["target"].partition(":")
    server = Server.objects.filter(pk=number).first()
    if server is None:
        form.add_error("target", "This server was removed.")
        return False
    try:
        made = chat_tests.start_chat_test(
            run,
            server=server,
            model=model,
            rows=form.cleaned_data["rows"],
            shots=form.cleaned_data["shots"],
            instructions=form.cleaned_data["instructions"],
            descriptions=form.cleaned_data["descriptions"],
            thinking=form.cleaned_data["thinking"],
        )
    except (NoRowResults, ValueError) as error:
        form.add_error(None, str(error))
        return False
    wake_pump(made.batch.server_id)
    return True


@require_safe
def chat_test_list(request: HttpRequest, pk: int) -> HttpResponse:
    """The results alone; the page asks again while a test is running."""
    context = run_page(request, pk, "ship", "chat")
    return render(request, "classifiers/evaluation/_chat_model_tests.html", context | _results(pk))


@require_POST
def cancel_chat_test(request: HttpRequest, pk: int, test: int) -> HttpResponse:
    found = _get(request, pk, test)
    try:
        cancel_batch(found.batch)
    except WrongState as error:
        messages.error(request, str(error))
    return redirect("classifiers:chat_tests", pk)


@require_POST
def remove_chat_test(request: HttpRequest, pk: int, test: int) -> HttpResponse:
    delete_batch(_get(request, pk, test).batch)
    return redirect("classifiers:chat_tests", pk)


def _get(request: HttpRequest, pk: int, test: int) -> ChatTest:
    run_page(request, pk, "ship", "chat")
    return get_object_or_404(ChatTest.objects.select_related("batch"), pk=test, run__classifier=pk)


def _results(pk: int) -> dict[str, Any]:
    tests = ChatTest.objects.filter(run__classifier=pk).select_related(
        "batch__server", "run__classifier"
    )
    found: list[dict[str, Any]] = []
    for test in tests.defer(*LARGE)[:SHOWN]:
        entry: dict[str, Any] = {"test": test, "active": test.batch.status in {"queued", "running"}}
        try:
            entry["result"] = chat_test_results.read_result(test)
        except NoRowResults as error:
            entry["problem"] = str(error)
        found.append(entry)
    return {
        "results": found,
        "most_examples": chat_tests.MOST_EXAMPLES,
        "working": any(entry["active"] for entry in found),
    }
