"""GET /metrics"""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.chat.models import Conversation, Message, Role, Status
from apps.core.models import ApiKey
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import sync_redis
from apps.servers.models import Server, State
from apps.work import services as work


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(
        name="GPU", base_url="http://gpu/v1", parallel=4, state=State.READY
    )


@pytest.fixture
def prometheus(carol: User) -> Client:
    """A program with the read-only key of carol, who is staff."""
    _, token = ApiKey.issue(user=carol, name="Prometheus", scope="read")
    return Client(headers={"authorization": f"Bearer {token}"})


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """Values by name and the sorted values of the labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.content
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_metrics_have_the_totals_of_each_model(prometheus: Client, gpu: Server) -> None:
    counts = {"requests": 2, "prompt": 100, "cached": 60, "reported": 80, "completion": 40}
    counts |= {"first_0": 1, "first_3": 1, "first_ms": 160}
    for name, amount in counts.items():
        sync_redis().hincrby(permit_key(gpu.pk, "totals"), f"{name}:qwen:7b", amount)
    found = samples(prometheus)
    model = ("GPU", "qwen:7b")
    assert found["workbench_requests_total", *model] == 2
    assert found["workbench_cached_tokens_total", *model] == 60
    assert found["workbench_generated_tokens_total", *model] == 40
    first = "workbench_time_to_first_token_seconds"
    assert [found[f"{first}_bucket", bound, *model] for bound in ("0.025", "0.15", "+Inf")] == [
        *(1, 2, 2)
    ]
    assert found[f"{first}_sum", *model] == 0.16


def test_metrics_have_slots_tasks_and_streams(prometheus: Client, gpu: Server, alice: User) -> None:
    chat = Conversation.objects.create(owner=alice)
    Message.objects.create(conversation=chat, role=Role.ASSISTANT, status=Status.QUEUED)
    work.enqueue("some-kind", 1, send=False)
    found = samples(prometheus)
    assert found["workbench_server_up", "GPU"] == 1
    assert found["workbench_slots", "GPU"] == 4
    assert found["workbench_busy_slots", "GPU"] == 0
    assert found["workbench_tasks", "queued"] == 1
    assert found["workbench_open_streams",] == 1


def test_metrics_are_for_keys_of_admins(api: Client, carol: User) -> None:
    assert Client().get("/metrics").status_code == 401
    assert Client(headers={"authorization": "Bearer wb_x"}).get("/metrics").status_code == 401
    assert api.get("/metrics").status_code == 403
    logged_in = Client()
    logged_in.force_login(carol)
    assert logged_in.get("/metrics").status_code == 401
    assert api.post("/metrics").status_code == 405


def test_metrics_count_the_rows_of_jobs_that_are_not_finished(
    prometheus: Client, alice: User
) -> None:
    for status in (BatchStatus.RUNNING, BatchStatus.DONE):
        batch = Batch.objects.create(owner=alice, name="Kettles", status=status, total=2)
        Item.objects.create(batch=batch, index=0, status=ItemStatus.ACCEPTED)
        Item.objects.create(batch=batch, index=1)
    found = samples(prometheus)
    assert found["workbench_job_rows", "accepted"] == 1
    assert found["workbench_job_rows", "pending"] == 1


def test_metrics_of_a_server_that_is_away_say_so(prometheus: Client, gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE, name='The "big" one\n')
    assert samples(prometheus)["workbench_server_up", 'The "big" one\n'] == 0
