"""Byte-level BPE and the chat template."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def render(messages: list[dict[str, str]], prompt: bool = False) -> str:
    """The same text as TEMPLATE makes."""
    text = "".join(f"{START}{m['role']}\n{m['content']}{END}\n" for m in messages)
    return text + (f"{START}assistant\n" if prompt else "")


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[START, END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def answer_mask(ids: list[int], tokenizer: Tokenizer) -> list[bool]:
    """True for what the assistant says, its end of turn included."""
    head = tokenizer.encode("assistant\n").ids
    start, end = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
    mask = [False] * len(ids)
    speaking = False
    i = 0
    while i < len(ids):
        if ids[i] == start and ids[i + 1 : i + 1 + len(head)] == head:
            speaking = True
            i += 1 + len(head)
            continue
        mask[i] = speaking
        speaking = speaking and ids[i] != end
        i += 1
    return mask
