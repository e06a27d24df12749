"""The JSON of jobs in the API."""

from datetime import datetime

from ninja import Field, Schema

from apps.generation.recipe.body import RecipeJson
from apps.generation.recipe.recipe import MAX_ROWS, MAX_SEED


class JobIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    rows: int = Field(ge=1, le=MAX_ROWS)
    recipe: RecipeJson
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    server: int | None = Field(None, description="Default: the server that is set for generation.")
    model: str = Field(
        "",
        max_length=300,
        description="Default: the one set for generation, or the server's first.",
    )
    keep_recipe: bool = Field(False, description="List the recipe among your recipes.")
    refill: bool = Field(
        False, description="Keep generating until `rows` rows are accepted, quotas included."
    )
    near_duplicates: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description=(
            "Reject a row that shares this fraction of 5-character sequences with an earlier row."
        ),
    )
    near_duplicates_by_meaning: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description="Reject a row with this cosine similarity to an earlier row. Start with 0.9.",
    )
    test_dataset: int | None = Field(
        None, description="A dataset whose texts must not be repeated."
    )
    width: int | None = Field(None, ge=1, le=1000, description="Max rows in parallel.")
    weight: int = Field(1, ge=1, le=100, description="Priority relative to other jobs.")
    daily_tokens: int | None = Field(None, ge=1, le=10**12)
    all_servers: bool = Field(
        False,
        description="Every server that serves the same model works on the job, not `server` alone.",
    )


class JobCreated(Schema):
    id: int
    status: str


class JobChanges(Schema):
    """Settings that can change while a job runs."""

    name: str | None = Field(None, min_length=1, max_length=200, pattern=r"\S")
    width: int | None = Field(None, ge=1, le=1000)
    weight: int | None = Field(None, ge=1, le=100)
    daily_tokens: int | None = Field(None, ge=1, le=10**12)


class MoreRows(Schema):
    rows: int = Field(ge=1, le=MAX_ROWS)


class Counts(Schema):
    pending: int
    running: int
    accepted: int
    rejected: int
    failed: int


class Reason(Schema):
    status: str
    code: str
    rows: int


class JobServerOut(Schema):
    """One of several servers that work on a job."""

    id: int
    name: str
    state: str = Field(description="working, waiting, away, left_out or standby.")
    reason: str = Field(description="Why it does not work on the job now.")
    is_fallback: bool = Field(description="Works only while the job's own server is away.")
    width: int
    rows: int = Field(description="Finished rows.")
    rows_per_s: float | None


class JobOut(Schema):
    id: int
    name: str
    status: str
    reason: str
    rows: int
    made: int
    refill: bool
    seed: int
    server: int | None
    server_name: str | None
    model: str
    created: datetime
    counts: Counts
    reasons: list[Reason]
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    width: int
    weight: int
    daily_tokens: int | None
    near_duplicates: float | None
    near_duplicates_by_meaning: float | None
    recipe_version: int | None
    for_dataset: int | None = Field(description="The dataset that it generates more rows for.")
    for_classifier: int | None = Field(description="The classifier it was started from.")
    all_servers: bool
    servers: list[JobServerOut] = Field(description="Empty for a job of one server.")
    recipe: RecipeJson
