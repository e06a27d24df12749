"""What to enter in other programs so that they use the workbench. Pure."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass

# Where the API key goes.
KEY = "wb_YOUR_KEY"


@dataclass(frozen=True, slots=True)
class Program:
    slug: str
    name: str
    where: str
    """Where the text goes."""
    text: Callable[[str, str], str]
    """Takes the origin of the workbench and the name of a model."""
    tried: str = ""
    """The version that worked with these settings, and when that was tried. "": it was not."""


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The text of one program, in parts so that a page can mark the key between them."""

    program: Program
    before: str
    after: str


def program_texts(origin: str, model: str) -> list[ProgramText]:
    """Return what to enter in each program.

    Args:
        origin: scheme, host and port, such as http://localhost:8000.
    """
    texts = []
    for program in PROGRAMS:
        before, _, after = program.text(origin, model).partition(KEY)
        texts.append(ProgramText(program, before, after))
    return texts


def _openai(origin: str, model: str) -> str:
    return f"""from openai import OpenAI

client = OpenAI(base_url="{origin}/v1", api_key="{KEY}")
answer = client.chat.completions.create(
    model={json.dumps(model)},
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(answer.choices[0].message.content)"""


def _anthropic(origin: str, model: str) -> str:
    return f"""from anthropic import Anthropic

client = Anthropic(base_url="{origin}", api_key="{KEY}")
message = client.messages.create(
    model={json.dumps(model)},
    max_tokens=1000,
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(message.content[-1].text)"""


def _langchain(origin: str, model: str) -> str:
    return f"""from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    base_url="{origin}/v1",
    api_key="{KEY}",
    model={json.dumps(model)},
)
print(model.invoke("Hello").content)"""


def _instructor(origin: str, model: str) -> str:
    return f"""import instructor
from openai import OpenAI
from pydantic import BaseModel

class City(BaseModel):
    name: str
    country: str

client = instructor.from_openai(
    OpenAI(base_url="{origin}/v1", api_key="{KEY}"),
    mode=instructor.Mode.JSON_SCHEMA,
)
city = client.chat.completions.create(
    model={json.dumps(model)},
    response_model=City,
    messages=[{{"role": "user", "content": "Paris is in France."}}],
)
print(city)"""


def _aider(origin: str, model: str) -> str:
    return f"""export OPENAI_API_BASE={shlex.quote(f"{origin}/v1")}
export OPENAI_API_KEY={KEY}
aider --model {shlex.quote(f"openai/{model}")}"""


def _continue(origin: str, model: str) -> str:
    return f"""name: Workbench
version: 1.0.0
schema: v1
models:
  - name: {json.dumps(model)}
    provider: openai
    model: {json.dumps(model)}
    apiBase: {origin}/v1
    apiKey: {KEY}
    roles: [chat, edit, apply]"""


def _open_webui(origin: str, model: str) -> str:
    return f"""export OPENAI_API_BASE_URL={shlex.quote(f"{origin}/v1")}
export OPENAI_API_KEY={KEY}
open-webui serve"""


def _librechat(origin: str, model: str) -> str:
    return f"""endpoints:
  custom:
    - name: Workbench
      baseURL: {origin}/v1
      apiKey: {KEY}
      models:
        default: [{json.dumps(model)}]
        fetch: true
      titleConvo: true
      titleModel: current_model"""


def _cline(origin: str, model: str) -> str:
    return f"""API Provider: OpenAI Compatible
Base URL: {origin}/v1
API Key: {KEY}
Model ID: {model}"""


def _n8n(origin: str, model: str) -> str:
    return f"""API Key: {KEY}
Base URL: {origin}/v1
Model, By ID: {model}"""


def _curl(origin: str, model: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    return f"""curl {shlex.quote(f"{origin}/v1/chat/completions")} \\
  -H "Authorization: Bearer {KEY}" \\
  -H "Content-Type: application/json" \\
  -d {shlex.quote(json.dumps(body))}"""


_DAY = "28 Nov 2026"
PROGRAMS = (
    Program("openai", "OpenAI SDK", "Python", _openai, f"3.54.0 on {_DAY}"),
    Program("anthropic", "Anthropic SDK", "Python", _anthropic, f"2.14.0 on {_DAY}"),
    Program("langchain", "LangChain", "Python", _langchain, f"langchain-openai 1.4.3 on {_DAY}"),
    Program("instructor", "Instructor", "Python", _instructor, f"1.17.0 on {_DAY}"),
    Program("aider", "aider", "Shell", _aider, f"0.86.2 on {_DAY}"),
    Program("cline", "Cline, Roo Code", "Settings, API configuration", _cline),
    Program("continue", "Continue", "~/.continue/config.yaml", _continue),
    Program("open-webui", "Open WebUI", "Shell, before its first start", _open_webui),
    Program("librechat", "LibreChat", "librechat.yaml", _librechat),
    Program("n8n", "n8n", "OpenAI credential and the node OpenAI Chat Model", _n8n),
    Program("curl", "curl", "Shell", _curl, f"7.88.1 on {_DAY}"),
)
