"""The first draft of a new job, by the address of its page."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from apps.datasets.models import Dataset
from apps.generation.models import Job, RecipeVersion
from apps.generation.recipe import targets
from apps.generation.recipe.library import starters
from apps.generation.views.draft import Draft
from apps.generation.views.form_numbers import key_of


def first_draft(request: HttpRequest, owner: User) -> Draft:
    """An empty draft, or one of a ready recipe, a saved one, an earlier job or a dataset."""
    asked = request.GET
    if (starter := starters.BY_KEY.get(asked.get("recipe", ""))) is not None:
        return Draft.from_recipe(starter.name, starter.recipe)
    if (job_key := asked.get("like", "")).isdecimal():
        jobs = Job.objects.owned_by(owner).select_related("batch__server", "version")
        return _from_job(owner, get_object_or_404(jobs, pk=int(job_key)))
    if (number := asked.get("version", "")).isdecimal():
        mine = RecipeVersion.objects.filter(saved__owner=owner).select_related("saved__server")
        version = get_object_or_404(mine, pk=int(number))
        draft = Draft.from_recipe(version.saved.name, version.body)
        draft.target = targets.choice_value(version.saved.server, version.saved.model)
        draft.keep = version.saved.kept
        draft.saved_recipe = version.saved_id
        if version.saved.lost_its_server:
            draft.errors["target"] = (
                "The model server of this recipe was removed. Choose another one, or keep the "
                "default."
            )
        return draft
    if (dataset := asked.get("dataset", "")).isdecimal():
        return _from_dataset(request, owner, int(dataset))
    return Draft.blank()


def _from_job(owner: User, job: Job) -> Draft:
    batch = job.batch
    draft = Draft.from_recipe(job.name, job.recipe)
    filters = job.spec.filters
    draft.earlier_batch = batch
    draft.saved_recipe = job.version.saved_id if job.version else None
    draft.target = targets.choice_value(batch.server, batch.model)
    draft.all_servers = batch.all_servers
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
    if job.test_dataset:  # the job stores its rows; of the dataset only the name is left
        same = Dataset.objects.owned_by(owner).filter(name=job.test_dataset).order_by("-pk").first()
        draft.test_dataset = "" if same is None else str(same.pk)
    return draft


def _from_dataset(request: HttpRequest, owner: User, pk: int) -> Draft:
    """More rows for some labels of a dataset: the way back from a classifier's mistakes.

    The address has `dataset`, `label` (repeated; none: all), `rows`, `test` (the dataset with the
    test rows) and `classifier` (with the mistakes).
    """
    mine = Dataset.objects.owned_by(owner)
    dataset = get_object_or_404(mine, pk=pk)
    labels = [label for label in request.GET.getlist("label") if label in dataset.label_counts]
    labels = list(dict.fromkeys(labels)) or list(dataset.label_counts)[:50]
    rows = request.GET.get("rows", "")
    count = int(rows) if rows.isdecimal() and 1 <= int(rows) <= 10_000 else 20 * len(labels)
    draft = Draft.from_recipe(
        f"More rows like {dataset.name}"[:200], starters.more_like(dataset.pk, labels, count)
    )
    draft.rows = str(count)
    draft.near = "85"
    draft.for_dataset = str(dataset.pk)
    draft.for_classifier = str(key_of(request.GET.get("classifier", "")) or "")
    test = request.GET.get("test", "")
    if test.isdecimal():
        draft.test_dataset = str(get_object_or_404(mine, pk=int(test)).pk)
    elif dataset.test_rows:
        draft.test_dataset = str(dataset.pk)
    return draft
