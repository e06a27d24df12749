"""The page of a new job: editing a recipe, trying it, queueing it."""

import asyncio
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from apps.batch.tasks import wake
from apps.core.quotas import limited
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.models import Job, RecipeVersion
from apps.generation.recipe import estimates, starters, targets, versions
from apps.generation.recipe.columns import checks, seeds
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows import personas, previews
from apps.generation.views.forms import Draft
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer

PREVIEWS = (3, 10)
DATASETS_SHOWN = 200
# (group, (kind, label, what it is, with an example))
COLUMN_KINDS = (
    ("Written by the model", (
        ("text", "Text", "The model writes free text: “Write a ticket about {{ topic }}.”"),
        ("structured", "Fields", "The model fills in named fields, such as a text and its label. "
         "The server enforces the types."),
        ("judge", "Judge", "The model scores the row from 1 to 5, “Is it realistic?”, and low "
         "scores reject it."),
    )),
    ("Random", (
        ("category", "Category", "One of your values in each row, evenly or by weight: positive, "
         "negative."),
        ("number", "Number", "A random number in a range, such as an age from 18 to 90."),
        ("date", "Date", "A random date in a range, such as last year."),
        ("uuid", "Identifier", "A random UUID, such as an order number."),
        ("persona", "Persona", "One of many people the model thinks up once: “a retired teacher "
         "who types slowly”. Texts then differ more."),
    )),
    ("From real data", (
        ("seed", "Seed rows", "A row of a dataset or file, as an example to imitate or a passage "
         "to ask about: {{ example_text }}."),
    )),
    ("Computed", (
        ("expression", "Expression", "Computed from the columns above, without the model: "
         "'angry' if stars < 3 else 'happy'."),
    )),
)  # fmt: skip

# Every place for a sentence in the form: a preview fills some and empties the others.
ERROR_PLACES = (
    *(
        "name",
        "target",
        "system",
        "columns",
        "quotas",
        "rows",
        "seed",
        "near",
        "meaning",
        "test_dataset",
    ),
    *("width", "weight", "daily_tokens", "temperature", "min_p", "max_tokens", "thinking"),
)


def _owner(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    owner = _owner(request)
    if request.method != "POST":
        return _form(request, _first_draft(request, owner))
    draft = Draft.posted(request.POST)
    plan = draft.read()
    test_dataset = None
    if plan is not None and plan.test_dataset is not None:
        mine = Dataset.objects.owned_by(owner)
        test_dataset = get_object_or_404(mine, pk=plan.test_dataset)
    if plan is None:
        return _form(request, draft, status=422)
    try:
        target = targets.chosen(plan.target)
        model = targets.stored_model(target)
        job = services.create_job(
            owner=owner,
            name=plan.name,
            rows=plan.rows,
            seed=plan.seed,
            recipe=plan.recipe,
            server=target.server,
            model=model,
            refill=plan.refill,
            near=plan.near,
            meaning=plan.meaning,
            test_dataset=test_dataset,
            width=plan.width,
            weight=plan.weight,
            daily_tokens=plan.daily_tokens,
            for_dataset=Dataset.objects.owned_by(owner).filter(pk=_key(draft.for_dataset)).first(),
            for_classifier=_key(draft.for_classifier) or None,
            version=lambda: versions.save(
                owner=owner,
                name=plan.name,
                recipe=plan.recipe,
                server=target.server if plan.target else None,
                model=model if plan.target else "",
                keep=plan.keep,
            ),
        )
    except NoServer as error:
        draft.errors["target"] = str(error)
        return _form(request, draft, status=422)
    except RecipeError as error:
        for problem in error.problems:
            draft.report(problem)
        return _form(request, draft, status=422)
    wake(target.server.pk)
    return redirect("generation:job", job.pk)


def _key(text: str) -> int:
    """A key that a form or an address names; 0 where it names none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _first_draft(request: HttpRequest, owner: User) -> Draft:
    """Empty, from a ready recipe, a saved one, an earlier job, or a dataset's weak labels."""
    asked = request.GET
    if (starter := starters.BY_KEY.get(asked.get("recipe", ""))) is not None:
        return Draft.of(starter.name, starter.recipe)
    if (again := asked.get("like", "")).isdecimal():
        jobs = Job.objects.owned_by(owner).select_related("batch__server")
        return _like(owner, get_object_or_404(jobs, pk=int(again)))
    if (number := asked.get("version", "")).isdecimal():
        mine = RecipeVersion.objects.filter(saved__owner=owner).select_related("saved__server")
        version = get_object_or_404(mine, pk=int(number))
        draft = Draft.of(version.saved.name, version.body)
        draft.target = targets.value_of(version.saved.server, version.saved.model)
        draft.keep = version.saved.kept
        if version.saved.lost_its_server:
            draft.errors["target"] = (
                "The model server of this recipe was removed. Choose another one, or keep the "
                "default."
            )
        return draft
    if (dataset := asked.get("dataset", "")).isdecimal():
        return _from_dataset(request, owner, int(dataset))
    return Draft.blank()


def _like(owner: User, job: Job) -> Draft:
    batch = job.batch
    draft = Draft.of(job.name, job.recipe)
    filters = job.spec.filters
    draft.earlier = batch
    draft.target = targets.value_of(batch.server, batch.model)
    if batch.server is None:
        draft.errors["target"] = (
            "The model server of that job was removed. Choose another one, or keep the default."
        )
    draft.rows = str(batch.wanted)
    draft.refill = batch.goal is not None
    draft.near = "" if filters.near is None else f"{100 * filters.near:g}"
    draft.meaning = "" if filters.meaning is None else f"{100 * filters.meaning:g}"
    draft.width = "" if batch.width is None else str(batch.width)
    draft.weight = str(batch.weight)
    draft.daily_tokens = "" if batch.daily_tokens is None else str(batch.daily_tokens)
    draft.for_dataset = "" if job.for_dataset_id is None else str(job.for_dataset_id)
    draft.for_classifier = "" if job.for_classifier is None else str(job.for_classifier)
    if job.test_dataset:  # its rows were stored with the job: of the dataset the name is left
        same = Dataset.objects.owned_by(owner).filter(name=job.test_dataset).order_by("-pk").first()
        draft.test_dataset = "" if same is None else str(same.pk)
    return draft


def _from_dataset(request: HttpRequest, owner: User, pk: int) -> Draft:
    """More rows of some labels of a dataset: the way back from a classifier's mistakes.

    `dataset`, `label` (once for each; none: all), `rows`, `test` (the dataset it is judged on),
    `classifier` (whose mistakes they are).
    """
    mine = Dataset.objects.owned_by(owner)
    dataset = get_object_or_404(mine, pk=pk)
    labels = [label for label in request.GET.getlist("label") if label in dataset.label_counts]
    labels = list(dict.fromkeys(labels)) or list(dataset.label_counts)[:50]
    rows = request.GET.get("rows", "")
    count = int(rows) if rows.isdecimal() and 1 <= int(rows) <= 10_000 else 20 * len(labels)
    draft = Draft.of(
        f"More rows like {dataset.name}"[:200], starters.more_like(dataset.pk, labels, count)
    )
    draft.rows = str(count)
    draft.near = "85"
    draft.for_dataset = str(dataset.pk)
    draft.for_classifier = str(_key(request.GET.get("classifier", "")) or "")
    test = request.GET.get("test", "")
    if test.isdecimal():
        draft.test_dataset = str(get_object_or_404(mine, pk=int(test)).pk)
    elif dataset.test_rows:
        draft.test_dataset = str(dataset.pk)
    return draft


def _form(request: HttpRequest, draft: Draft, status: int = 200) -> HttpResponse:
    datasets = Dataset.objects.owned_by(_owner(request)).only("pk", "name", "rows")
    context = {
        "draft": draft,
        "offered": targets.offered(draft.target),
        "before": _before(draft),
        "kinds": COLUMN_KINDS,
        "check_kinds": checks.KINDS,
        "formats": seeds.FORMATS,
        "datasets": datasets[:DATASETS_SHOWN],
        "problems": _problems(draft),
        "starters": starters.STARTERS if draft.is_untouched else (),
        "saved": versions.kept_of(_owner(request)) if draft.is_untouched else (),
    }
    return render(request, "generation/editor/editor.html", context, status=status)


def _before(draft: Draft) -> dict[str, Any]:
    """What is known of a job's time before anything was tried."""
    if draft.earlier is not None:
        return {"seconds": estimates.from_job(draft.earlier, draft.earlier.wanted)}
    try:
        target = targets.chosen(draft.target)
    except NoServer:
        return {}
    rates = estimates.rates_of(target.server, target.model)
    return {"rates": (min(rates), max(rates)) if rates else None, "target": target}


def _problems(draft: Draft) -> list[tuple[str, str]]:
    return [(".".join(map(str, found.place)), found.message) for found in draft.problems]


def _feedback(draft: Draft) -> dict[str, Any]:
    """What a fragment says back to the form."""
    return {
        "draft": draft,
        "sentences": [(name, draft.errors.get(name, "")) for name in ERROR_PLACES],
        "problems": _problems(draft),
    }


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """What is wrong with the recipe as it stands, while it is being typed."""
    draft = Draft.posted(request.POST)
    draft.name = draft.name or "Check"
    draft.read()
    return render(request, "generation/editor/_problems.html", _feedback(draft))


@require_POST
@limited("previews")
async def preview(request: HttpRequest) -> HttpResponse:
    """Some rows, really asked for; or what is wrong, at the fields. Both in one fragment."""
    owner = await request.auser()
    assert isinstance(owner, User)
    draft = Draft.posted(request.POST)
    draft.name = draft.name or "Preview"
    plan = await asyncio.to_thread(draft.read)  # up to megabytes of seed rows, and templates
    rows = int(request.POST.get("try", "3")) if request.POST.get("try") in {"3", "10"} else 3
    context: dict[str, Any] = {}
    if plan is not None:
        try:
            target = await in_db(targets.chosen, plan.target)
            tables = await in_db(services.tables_of, owner, plan.recipe)
            tried = await previews.preview(
                target, plan.recipe, plan.seed, person=owner.pk, rows=rows, tables=tables
            )
            context["rows"] = tried
            context["system"] = plan.recipe.system_message
            context["estimate"] = await in_db(
                partial(estimates.estimate, refill=plan.refill, width=plan.width),
                target,
                tried,
                plan.rows,
            )
        except RecipeError as error:
            for problem in error.problems:
                draft.report(problem)
        except (NoServer, LLMError) as error:
            context["problem"] = str(error)
    context |= _feedback(draft)
    return await sync_to_async(render)(request, "generation/editor/_preview.html", context)


@require_POST
@limited("previews")
async def write_personas(request: HttpRequest) -> HttpResponse:
    """People that the model makes up, as JSON: {"values": [...]} or {"problem": "..."}."""
    about = request.POST.get("about", "").strip()[:500]
    count = request.POST.get("count", "")
    number = int(count) if count.isdecimal() and 1 <= int(count) <= personas.MOST else 20
    try:
        target = await in_db(targets.chosen, request.POST.get("target", ""))
        person = (await request.auser()).pk
        values = await personas.write(target, about, number, person=person)
    except (NoServer, LLMError, personas.NothingWritten) as error:
        return JsonResponse({"problem": str(error)}, status=200)
    return JsonResponse({"values": values})


@require_POST
def forget_recipe(request: HttpRequest, pk: int) -> HttpResponse:
    """Deletes a saved recipe with its versions; jobs keep what they were made with."""
    saved = _owner(request).pk
    version = RecipeVersion.objects.filter(saved__owner_id=saved, saved_id=pk).first()
    if version is None:
        raise Http404
    version.saved.delete()
    return redirect("generation:index")
