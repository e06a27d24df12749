"""One request of a batch file, as a row of a job: sent within the limits of its key."""

import json
import logging
import time

from redis.exceptions import RedisError

from apps.batch.errors import RowPostponed
from apps.batch.handlers import JobContext, RowInput, RowOutcome, Verdict
from apps.batch.services import target_of
from apps.core.http.openai_errors import openai_error
from apps.core.models import ApiKey
from apps.core.schemas.json_types import JsonObject
from apps.gateway.batches.batch_spec import BatchSpec
from apps.gateway.continuing.count import Asked
from apps.gateway.continuing.draft import Draft
from apps.gateway.errors import GatewayError, from_model_server
from apps.gateway.limits.admission import admitted
from apps.gateway.limits.answers import allowed_targets, bounded
from apps.gateway.own_models.answer import complete_with_label
from apps.gateway.program_request import ProgramRequest, read_request
from apps.gateway.relay import collect
from apps.gateway.routes import upstream_url
from apps.gateway.usage import counters
from apps.gateway.usage.record import RequestRecord
from apps.gateway.usage.reported import HEAD_BYTES, TAIL_BYTES, usage_in
from apps.llm import errors
from apps.llm.client import refused_answer
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.runtime.async_db import in_db

POSTPONED_SECONDS = 5.0
EXPIRED = "batch_expired"
EXPIRED_TEXT = "The request was not sent before the batch expired."
# The server read the request and refuses it: the same request would be refused again.
REFUSED = (
    errors.BadRequest,
    errors.PromptTooLong,
    errors.InputTooLarge,
    errors.RequestTooLarge,
    errors.NotSupported,
)

logger = logging.getLogger(__name__)


async def run_row(row: RowInput, context: JobContext[BatchSpec]) -> RowOutcome:
    """Send a request.

    Raises:
        RowPostponed: a limit of its key is reached.
        LLMError: the server did not answer; the request may be sent again.
    """
    spec = context.spec
    if time.time() >= spec.expires_at:
        return _not_sent(EXPIRED, EXPIRED_TEXT)
    key = await in_db(_find_key, spec.key_id)
    if key is None:
        return _not_sent("invalid_api_key", "The API key of the batch was revoked or has expired.")
    assert isinstance(row.input, dict)
    assert isinstance(row.input["body"], dict)
    model = spec.own_model or context.model
    body = json.dumps({**row.input["body"], "model": model}).encode()
    record = RequestRecord(key)
    try:
        async with admitted(key, lambda: _charge(record, len(body))):
            request = bounded(read_request(spec.endpoint, (), body, spec.lane), key)
            if spec.own_model:
                outcome = await _label(request, key, record)
            else:
                await in_db(_check_model, key, context.batch_id)
                draft = await _draft_of(request, row.draft)
                asked = Asked(context.client, context.model, row.draft.can_continue)
                outcome = await _send(request, asked, record, draft)
    except GatewayError as error:
        if error.status == 429 or error.retry_after:
            raise RowPostponed(str(error), error.retry_after or POSTPONED_SECONDS) from error
        record.status, record.has_ended = error.status, True
        outcome = _refused(error.status, openai_error(error.status, error.code, str(error)))
    await _count(record, key)
    return outcome


def _charge(record: RequestRecord, body_bytes: int) -> int:
    """Return the tokens that count for limits: none of a request that is sent again."""
    return record.charge(body_bytes) if record.has_ended else 0


def _find_key(key_id: int) -> ApiKey | None:
    working = ApiKey.objects.working().select_related("user", "user__program_limits")
    return working.filter(pk=key_id, user__is_active=True).first()


def _check_model(key: ApiKey, batch_id: int) -> None:
    """Check that the key may still use the model of its batch.

    Raises:
        GatewayError: it may not.
    """
    target = target_of(batch_id)
    if target is not None:
        allowed_targets([target], key)


async def _draft_of(request: ProgramRequest, resumed: ResumableCompletion) -> Draft:
    """Return what there is of the answer, from before the row's slot was taken."""
    draft = resumed.kept
    if isinstance(draft, Draft) and draft.is_of(request):
        await draft.keep()
        return draft
    resumed.kept = draft = Draft(request)
    return draft


async def _send(
    request: ProgramRequest, asked: Asked, record: RequestRecord, draft: Draft
) -> RowOutcome:
    endpoint = asked.client.endpoint
    url = upstream_url(request.path, endpoint.root, endpoint.base_url)
    record.start(asked.model)
    while True:
        try:
            status, answer = await _whole_answer(url, asked, draft)
            break
        except REFUSED as error:
            if not draft.gave_up(error):
                return _refused_by_server(error, record)
    record.status, record.has_ended = status, True
    record.add(answer)
    return _accepted(status, answer)


async def _whole_answer(url: str, asked: Asked, draft: Draft) -> tuple[int, bytes]:
    body = draft.body_for(asked)
    raw = await asked.client.open_raw(url, body, {}, whole=not draft.is_rewritten)
    try:
        first = await raw.read()
        draft.begin()
        await collect(first, raw, draft.pieces)
    finally:
        await raw.aclose()
    return raw.status, b"".join(await draft.finish())


async def _label(request: ProgramRequest, key: ApiKey, record: RequestRecord) -> RowOutcome:
    record.start_own(request.model)
    answer = await complete_with_label(request, key)
    record.status, record.has_ended = 200, True
    record.add(answer)
    return _accepted(200, answer)


def _accepted(status: int, answer: bytes) -> RowOutcome:
    text = answer.decode(errors="replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise errors.ServerFailed("The model server's answer is not JSON.") from None
    usage = usage_in(answer[-TAIL_BYTES:], answer[:HEAD_BYTES]) or Usage(0, 0, 0)
    return RowOutcome(Verdict.ACCEPTED, output={"status_code": status}, raw=text, usage=usage)


def _refused_by_server(error: errors.LLMError, record: RequestRecord) -> RowOutcome:
    refused, ours = refused_answer(error), from_model_server(error)
    record.status, record.has_ended = refused.status if refused else ours.status, True
    try:
        body = json.loads(refused.body) if refused else None
    except (ValueError, RecursionError):
        body = None
    return _refused(record.status, body or openai_error(ours.status, ours.code, str(ours)))


def _refused(status: int, body: JsonObject) -> RowOutcome:
    output: JsonObject = {"status_code": status}
    detail = json.dumps(body)
    return RowOutcome(Verdict.REJECTED, output, raw=detail, code="refused", reason=detail[:500])


def _not_sent(code: str, reason: str) -> RowOutcome:
    return RowOutcome(Verdict.REJECTED, code=code, reason=reason)


async def _count(record: RequestRecord, key: ApiKey) -> None:
    try:
        await counters.count(record, key)
    except RedisError as error:
        logger.warning("A request is not in the usage, Redis does not answer: %s", error)
