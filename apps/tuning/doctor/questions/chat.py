"""The questions to a model that chats. Each fills its fields of the answers."""

from apps.llm.client import Message
from apps.llm.errors import BadRequest, NotSupported, PromptTooLong
from apps.llm.thinking import NOT_REPORTED, plan_thinking
from apps.tuning.doctor.answers import COLOURS, Answers
from apps.tuning.doctor.questions.asker import Asker
from apps.tuning.doctor.questions.prompts import render
from apps.tuning.doctor.reading import Reading

TOOL = "doctor_reads_thermometer"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Returns the temperature of a room.",
            "parameters": {
                "type": "object",
                "properties": {"room": {"type": "string"}},
                "required": ["room"],
            },
        },
    }
]
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "colour",
        "schema": {
            "type": "object",
            "properties": {"colour": {"enum": list(COLOURS)}},
            "required": ["colour"],
            "additionalProperties": False,
        },
    },
}
THOUGHT_TOKENS = 32
JSON_TOKENS = 64


async def ask_with_tool(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Look for a tool in the rendered prompt, and send one request that has it."""
    if reading.has_own_routes:
        asked: Message = {"role": "user", "content": "How warm is it?"}
        answers.shows_tools = TOOL in await render(asker, asked, tools=TOOLS)
    try:
        await asker.chat("How warm is it in the kitchen?", 16, tools=TOOLS)
    except (BadRequest, NotSupported) as error:
        answers.tools_refused = str(error)
    except PromptTooLong as error:
        answers.tool_prompt_tokens = error.tokens


async def ask_without_thinking(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Turn thinking off with every field that a server may listen to."""
    if reading.thinking.thinks is False:
        return
    params = plan_thinking(NOT_REPORTED, "off").params
    answers.thinking_off = (await asker.chat("Say hello.", THOUGHT_TOKENS, params=params)).answer


async def ask_for_json(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Ask for a colour under a schema, and for anything but a colour in words."""
    plan = plan_thinking(reading.thinking)
    reply = await asker.chat(
        "Write a sentence about the sea, without JSON.",
        JSON_TOKENS + plan.extra_tokens,
        params=plan.params,
        response_format=SCHEMA,
    )
    answers.schema = reply.answer
