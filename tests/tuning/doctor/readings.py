"""What a healthy server reports and answers, for the checks."""

from apps.llm.thinking import ThinkingSupport
from apps.tuning.doctor.answers import Answer, Answers, Arrival, Leaving, LongText
from apps.tuning.doctor.prompt_answers import PromptRead, Turns
from apps.tuning.doctor.reading import Reading

CHAT = Reading(
    model="tiny",
    is_llama_cpp=True,
    has_own_routes=True,
    embeds=False,
    slots=4,
    context=4096,
    context_trained=8192,
    shows_slots=True,
    shows_metrics=True,
    is_keyless=False,
    allowed_origin="https://doctor.example",
    template="{{ messages }}",
    takes_tools=True,
    thinking=ThinkingSupport(thinks=True, can_switch=True, can_disable=True),
    uses=frozenset({"chat", "generation"}),
)
EMBEDDINGS = Reading(
    model="embed",
    is_llama_cpp=True,
    has_own_routes=True,
    embeds=True,
    slots=2,
    context=2048,
    context_trained=2048,
    shows_slots=True,
    shows_metrics=True,
    is_keyless=False,
    uses=frozenset({"embeddings"}),
)


def chat_answers() -> Answers:
    return Answers(
        has_token=True,
        again=PromptRead(1000, 950, 0.02),
        changed=PromptRead(1000, 12, 0.5),
        next_turn=PromptRead(1020, 990, 0.02),
        turns=Turns(4000, 4000, keeps_reasoning=True),
        shows_tools=True,
        thinking_off=Answer("Hello.", "", "stop", 3),
        schema=Answer('{"colour": "red"}', "", "stop", 9),
        arrival=Arrival(81, 2.0, 2.0, 0.01),
        leaving=Leaving(0, 0.0, 300),
    )


def embedding_answers() -> Answers:
    return Answers(has_token=True, norm=1.0, likeness=0.7, long_text=LongText(2040, None))
