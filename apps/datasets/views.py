from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.datasets import formats, services
from apps.datasets.formats import FormatError, Layout, Mapping, RejectedRow
from apps.datasets.models import Dataset, Upload

PAGE_ROWS = 50
PREVIEW_ROWS = 8
REJECTIONS_SHOWN = 200
CONTENT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv"}


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    datasets = Dataset.objects.owned_by(request.user)
    return render(request, "datasets/index.html", {"datasets": datasets})


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Choose a file. It is kept as an upload until its columns are confirmed."""
    context: dict[str, Any] = {"limit": settings.UPLOAD_LIMIT_BYTES}
    if request.method != "POST":
        return render(request, "datasets/new.html", context)
    file = request.FILES.get("file")
    try:
        if not isinstance(file, UploadedFile):
            raise FormatError("Choose a file first.")
        upload = services.store_upload(owner=_owner(request), file=file)
        try:
            formats.inspect(upload.path, name=upload.file_name)
        except FormatError:
            services.remove_upload(upload)
            raise
    except (FormatError, services.TooLarge) as error:
        template = "datasets/_upload.html" if _is_fragment(request) else "datasets/new.html"
        return render(request, template, context | {"error": str(error)}, status=422)
    return _go(request, reverse("datasets:upload", args=[upload.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The first rows under the columns as guessed or chosen; POST imports them all."""
    found = get_object_or_404(Upload.objects.owned_by(request.user), pk=pk)
    if not found.path.is_file():
        raise Http404
    if request.method == "POST":
        chosen = _chosen(request.POST)
        try:
            dataset = services.import_upload(
                found,
                name=request.POST.get("name", "").strip() or Path(found.file_name).stem,
                mapping=chosen.mapping or Mapping("", ""),
                header=chosen.header,
            )
        except (FormatError, services.NothingUsable) as error:
            context = _preview(found, chosen) | {"error": str(error)}
            return render(request, "datasets/upload.html", context, status=422)
        messages.success(request, f"{dataset.rows:,} rows were imported.")
        return redirect("datasets:detail", dataset.pk)
    template = "datasets/_mapping.html" if _is_fragment(request) else "datasets/upload.html"
    return render(request, template, _preview(found, _chosen(request.GET)))


@require_POST
def discard_upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    services.remove_upload(get_object_or_404(Upload.objects.owned_by(request.user), pk=pk))
    return redirect("datasets:new")


@require_POST
def create_example(request: HttpRequest) -> HttpResponse:
    dataset = services.create_example_dataset(_owner(request))
    return redirect(f"{reverse('classifiers:new')}?dataset={dataset.pk}")


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.owned_by(request.user), pk=pk)
    counts = sorted(dataset.label_counts.items(), key=lambda item: (-item[1], item[0]))
    context = _examples(dataset, request) | {
        "labels": counts,
        "most": max(dataset.label_counts.values(), default=0),
        "rejections": dataset.rejections.all()[:REJECTIONS_SHOWN],
        "rejections_shown": REJECTIONS_SHOWN,
    }
    return render(request, "datasets/detail.html", context)


@require_safe
def examples(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.owned_by(request.user), pk=pk)
    return render(request, "datasets/_examples.html", _examples(dataset, request))


@require_safe
async def export(request: HttpRequest, pk: int, form: str) -> StreamingHttpResponse:
    dataset = await aget_object_or_404(Dataset.objects.owned_by(await request.auser()), pk=pk)
    return export_response(dataset, form)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.owned_by(request.user), pk=pk)
    dataset.delete()
    messages.success(request, f"“{dataset.name}” was deleted. Classifiers made of it stay.")
    return _go(request, reverse("datasets:index"))


def export_response(dataset: Dataset, form: str) -> StreamingHttpResponse:
    """The whole dataset as a download, in pieces.

    Raises:
        Http404: there is no such format.
    """
    if form not in CONTENT_TYPES:
        raise Http404
    response = StreamingHttpResponse(
        services.export(dataset, form=form), content_type=f"{CONTENT_TYPES[form]}; charset=utf-8"
    )
    name = f"{dataset.name}.{form}"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


@dataclass(frozen=True, slots=True)
class _Chosen:
    mapping: Mapping | None
    header: bool | None


def _chosen(data: QueryDict) -> _Chosen:
    """What a person chose in the form; nothing on the first visit."""
    if "text" not in data:
        return _Chosen(None, None)
    text, label, split = (str(data.get(name) or "") for name in ("text", "label", "split"))
    mapping = Mapping(text, label, split or None)
    return _Chosen(mapping, "header" in data if "has_header" in data else None)


def _preview(found: Upload, chosen: _Chosen) -> dict[str, Any]:
    layout = formats.inspect(found.path, name=found.file_name, header=chosen.header)
    rows = formats.sample(found.path, layout)
    mapping = chosen.mapping
    problem = ""
    if mapping is None or not {mapping.text, mapping.label} <= set(layout.columns):
        mapping = formats.guess_mapping(layout.columns, rows)  # the header came or went
    try:
        services.check_mapping(layout, mapping)
    except FormatError as error:
        problem = str(error)
    return {
        "upload": found,
        "layout": layout,
        "mapping": mapping,
        "problem": problem,
        "name": Path(found.file_name).stem,
        "columns": [{"name": name, "role": _role(name, mapping)} for name in layout.columns],
        "rows": [
            [
                {"text": cell[:300], "role": _role(name, mapping)}
                for name, cell in zip(layout.columns, row, strict=True)
            ]
            for row in rows[:PREVIEW_ROWS]
        ],
        "sampled": len(rows),
        "rejections": [] if problem else _sample_rejections(found, layout, mapping),
    }


def _role(column: str, mapping: Mapping) -> str:
    roles = {mapping.split: "split", mapping.label: "label", mapping.text: "text"}
    return roles.get(column, "")


def _sample_rejections(found: Upload, layout: Layout, mapping: Mapping) -> list[RejectedRow]:
    rejections = []
    for seen, row in enumerate(formats.read(found.path, layout, mapping)):
        if isinstance(row, RejectedRow):
            rejections.append(row)
        if seen == formats.SAMPLE_ROWS:
            break
    return rejections


def _examples(dataset: Dataset, request: HttpRequest) -> dict[str, Any]:
    label = request.GET.get("label", "")
    shown = dataset.examples.order_by("index")
    count = dataset.rows
    if label:
        shown = shown.filter(label=label)
        count = dataset.label_counts.get(label, 0)
    paginator = _CountedPaginator(shown, PAGE_ROWS, known_count=count)
    return {
        "dataset": dataset,
        "label": label,
        "page": paginator.get_page(request.GET.get("page")),
    }


class _CountedPaginator(Paginator):  # type: ignore[type-arg]  # generic in the stubs alone
    """The dataset knows its counts: a page must not count a million rows."""

    def __init__(self, rows: Any, per_page: int, *, known_count: int) -> None:
        super().__init__(rows, per_page)
        self.count = known_count  # a cached property, filled beforehand


def _owner(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _is_fragment(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def _go(request: HttpRequest, url: str) -> HttpResponse:
    """Elsewhere, also for htmx, which would put the other page inside this one."""
    if _is_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return redirect(url)
