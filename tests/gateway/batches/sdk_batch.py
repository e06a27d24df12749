"""A batch of any size, created with OpenAI's SDK at a program that runs."""

import json
from pathlib import Path

import openai  # noqa: TID251 - a program that asks us

from apps.servers.services import CHAT_SERVER
from tests.gateway.batches.steps import CHAT


def start(sdk: openai.OpenAI, folder: Path, requests: int) -> str:
    """Return the name of a new batch.

    Args:
        folder: where to put its file.
    """
    model = next(model.id for model in sdk.models.list() if model.owned_by == CHAT_SERVER)
    path = folder / "requests.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(requests):
            message = {"role": "user", "content": f"Say {number}"}
            body = {"model": model, "messages": [message], "max_tokens": 40, "seed": number}
            line = {"custom_id": f"n{number}", "method": "POST", "url": CHAT, "body": body}
            file.write(json.dumps(line) + "\n")
    file_id = sdk.files.create(file=path, purpose="batch").id
    batch = sdk.batches.create(input_file_id=file_id, endpoint=CHAT, completion_window="24h")
    return batch.id
