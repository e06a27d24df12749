"""Instructor: an answer that is an object of a class, by the server's grammar."""

import os
from typing import Literal

import instructor
from openai import OpenAI
from pydantic import BaseModel

root, key, model = (os.environ[name] for name in ("ROOT", "KEY", "MODEL"))


class Mood(BaseModel):
    mood: Literal["good", "bad"]


client = instructor.from_openai(
    OpenAI(base_url=f"{root}/v1", api_key=key), mode=instructor.Mode.JSON_SCHEMA
)
found = client.chat.completions.create(
    model=model,
    response_model=Mood,
    max_tokens=200,
    max_retries=1,
    messages=[{"role": "user", "content": "What a day."}],
)
assert found.mood in {"good", "bad"}
