"""A model of half a megabyte with random weights: real enough for llama.cpp to serve.

It reads and writes bytes, so any text is a prompt, one token per byte (and one for the start).
What it writes is nonsense in lower-case letters, a function of prompt and seed. It hardly ever
ends by itself, but under a JSON schema it closes strings, lists and objects after a few tokens.
"""

import math
from pathlib import Path

import gguf
import numpy as np

SPECIAL_TOKENS = ["<unk>", "<s>", "</s>"]
SPECIAL_TYPES = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
UNK, BOS, EOS = range(3)
VOCABULARY = len(SPECIAL_TOKENS) + 256
CONTEXT = 8192  # tokens; a slot may be given less
WIDTH = 64
HEADS = 4
KV_HEADS = 2
HEAD_WIDTH = WIDTH // HEADS
FEED_FORWARD = 128
LAYERS = 2
# Dimension 0 holds the same number for every token and no layer changes it, so its column in the
# output matrix acts as a bias: it decides how likely each byte is whatever the prompt was.
BIAS_DIMENSION = 0
BIAS_INPUT = 0.8
BIAS_AFTER_NORM = 5.0  # about what the final normalisation makes of BIAS_INPUT

CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


# In the manner of Qwen3: thinks first, unless it is told not to.
THINKING_TEMPLATE = """{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == "assistant" and message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% else %}<think>
{% endif %}{%- endif %}"""
# In the manner of DeepSeek R1: always thinks first.
ALWAYS_THINKING_TEMPLATE = THINKING_TEMPLATE.replace(
    """{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% else %}<think>
{% endif %}""",
    "<think>\n",
)

# In the manner of Hermes and Qwen: llama.cpp finds out that it takes tools.
TOOL_TEMPLATE = """{%- if tools %}<system>You may call functions: <tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For each call return <tool_call>
{"name": <name>, "arguments": <arguments>}
</tool_call>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<user><tool_response>
{{ message.content }}
</tool_response>
{% elif message.tool_calls %}<assistant>{{ message.content }}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}
{% else %}<{{ message.role }}>{{ message.content }}
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""


def write_tiny_gguf(
    path: Path,
    *,
    embeddings: bool = False,
    pooling: gguf.PoolingType = gguf.PoolingType.MEAN,
    template: str = CHAT_TEMPLATE,
) -> Path:
    """Write the model and return its path; `embeddings` makes a pooling one instead."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    if embeddings:
        writer.add_pooling_type(pooling)
    add_tokenizer(writer, template)
    for name, weights in random_weights(embeddings=embeddings).items():
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# The eyes of the model: as LLaVA has them, but of 40,000 weights. Any picture is PICTURE_TOKENS.
EYE_WIDTH, EYE_HEADS, EYE_LAYERS = 32, 2, 2
PICTURE_PIXELS, PATCH_PIXELS = 112, 14
PICTURE_TOKENS = (PICTURE_PIXELS // PATCH_PIXELS) ** 2


def write_tiny_projector(path: Path) -> Path:
    """Write what llama.cpp takes as --mmproj beside the model, and return its path."""
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("mlp")
    writer.add_vision_use_gelu(True)
    writer.add_vision_image_size(PICTURE_PIXELS)
    writer.add_vision_patch_size(PATCH_PIXELS)
    writer.add_vision_embedding_length(EYE_WIDTH)
    writer.add_vision_feed_forward_length(2 * EYE_WIDTH)
    writer.add_vision_projection_dim(WIDTH)
    writer.add_vision_block_count(EYE_LAYERS)
    writer.add_vision_head_count(EYE_HEADS)
    writer.add_vision_attention_layernorm_eps(1e-5)
    writer.add_vision_image_mean([0.5] * 3)
    writer.add_vision_image_std([0.5] * 3)
    rng = np.random.default_rng(0)
    for name, shape in projector_shapes().items():
        writer.add_tensor(name, rng.normal(0.0, 0.05, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def projector_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the projector's tensors, by GGUF name."""
    eye, inner = EYE_WIDTH, 2 * EYE_WIDTH
    linear = {"v.pre_ln": (eye,), "mm.0": (WIDTH, eye), "mm.2": (WIDTH, WIDTH)}
    for layer in range(EYE_LAYERS):
        block = f"v.blk.{layer}"
        linear |= {f"{block}.{name}": (eye,) for name in ("ln1", "ln2")}
        linear |= {f"{block}.attn_{name}": (eye, eye) for name in ("q", "k", "v", "out")}
        linear |= {f"{block}.ffn_up": (inner, eye), f"{block}.ffn_down": (eye, inner)}
    shapes: dict[str, tuple[int, ...]] = {
        "v.patch_embd.weight": (eye, 3, PATCH_PIXELS, PATCH_PIXELS),
        "v.class_embd": (eye,),
        "v.position_embd.weight": (PICTURE_TOKENS + 1, eye),
    }
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


def add_tokenizer(writer: gguf.GGUFWriter, template: str = CHAT_TEMPLATE) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    tokens, types = [f"<0x{byte:02X}>" for byte in range(256)], [gguf.TokenType.BYTE] * 256
    # As such a tokenizer writes a space; else it would read one as the three bytes of this.
    tokens[ord(" ")], types[ord(" ")] = "\u2581", gguf.TokenType.NORMAL
    writer.add_token_list(SPECIAL_TOKENS + tokens)
    writer.add_token_types(SPECIAL_TYPES + types)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_unk_token_id(UNK)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(template)


def random_weights(*, embeddings: bool) -> dict[str, np.ndarray]:
    """Tensors by GGUF name, shaped (outputs, inputs); the same on every call."""
    rng = np.random.default_rng(0)

    def random(outputs: int, inputs: int, scale: float) -> np.ndarray:
        return rng.normal(0.0, scale, (outputs, inputs))

    def layer_output(inputs: int) -> np.ndarray:
        weights = random(WIDTH, inputs, 0.05)
        weights[BIAS_DIMENSION] = 0.0
        return weights

    tokens = random(VOCABULARY, WIDTH, 0.1)
    tokens[:, BIAS_DIMENSION] = 0.0 if embeddings else BIAS_INPUT
    output = random(VOCABULARY, WIDTH, 0.08)
    output[:, BIAS_DIMENSION] = token_biases() / BIAS_AFTER_NORM
    weights = {
        "token_embd.weight": tokens,
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        weights[f"{block}.attn_norm.weight"] = np.ones(WIDTH)
        weights[f"{block}.attn_q.weight"] = random(HEADS * HEAD_WIDTH, WIDTH, 0.2)
        weights[f"{block}.attn_k.weight"] = random(KV_HEADS * HEAD_WIDTH, WIDTH, 0.2)
        weights[f"{block}.attn_v.weight"] = random(KV_HEADS * HEAD_WIDTH, WIDTH, 0.05)
        weights[f"{block}.attn_output.weight"] = layer_output(HEADS * HEAD_WIDTH)
        weights[f"{block}.ffn_norm.weight"] = np.ones(WIDTH)
        weights[f"{block}.ffn_gate.weight"] = random(FEED_FORWARD, WIDTH, 0.05)
        weights[f"{block}.ffn_up.weight"] = random(FEED_FORWARD, WIDTH, 0.05)
        weights[f"{block}.ffn_down.weight"] = layer_output(FEED_FORWARD)
    return weights


def token_biases() -> np.ndarray:
    """Added to each token's logit, shape (VOCABULARY,): how much more likely than a letter."""
    likelihood = dict.fromkeys(b"abcdefghijklmnopqrstuvwxyz", 1.0)
    likelihood |= {ord(" "): 4.0} | dict.fromkeys(b"0123456789", 0.05)
    likelihood |= {ord('"'): 1.5} | dict.fromkeys(b",]}", 1.0)
    biases = np.full(VOCABULARY, math.log(1e-6))
    for byte, times in likelihood.items():
        biases[len(SPECIAL_TOKENS) + byte] = math.log(times)
    return biases
