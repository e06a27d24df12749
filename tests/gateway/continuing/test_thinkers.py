"""Models that think before they answer: no server goes on with a thought."""

from collections.abc import Iterator

import httpx2
import pytest

from apps.servers.models import Server
from tests.conftest import SLOTS, create_server
from tests.environment import FOLDER
from tests.gateway.continuing.cut_answers import (
    BODIES,
    CHAT,
    CONTINUED,
    RESTARTS,
    ask_beside_people,
    read,
    without_times,
)
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import THINKING_TEMPLATE, write_tiny_gguf

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]


@pytest.fixture(scope="module")
def thinking_llama() -> Iterator[LlamaProcess]:
    model = write_tiny_gguf(FOLDER / "thinks-on.gguf", template=THINKING_TEMPLATE)
    with LlamaProcess(model, parallel=SLOTS, context_per_slot=4096) as process:
        yield process


@pytest.fixture
def thinker(db: None, thinking_llama: LlamaProcess) -> Server:
    return create_server(thinking_llama, "Thinker", "chat")


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("cuts", [0, 1])
async def test_the_answer_is_that_of_who_kept_its_slot(
    program: httpx2.AsyncClient, thinker: Server, thinks: bool, stream: bool, cuts: int
) -> None:
    body = {**BODIES[CHAT], "stream": stream, "chat_template_kwargs": {"enable_thinking": thinks}}
    plain = await program.post(CHAT, json=body)
    answer = await ask_beside_people(program, thinker, CHAT, body, cuts=cuts)
    assert answer.headers.get(RESTARTS, "0") == str(cuts if thinks else 0)
    assert answer.headers.get(CONTINUED, "0") == str(0 if thinks else cuts)
    assert list(map(without_times, read(answer))) == list(map(without_times, read(plain)))
