"""What of a model decides how much memory it takes, read from its GGUF header (pure)."""

from dataclasses import dataclass

from gguf.constants import LlamaFileType

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import GgufHeader, Tensor
from apps.tuning.planner.model.header_values import HeaderValues
from apps.tuning.planner.model.sliding_window import sliding_layers

# Encoders: they keep no KV cache.
WITHOUT_CACHE = {
    "bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "modern-bert",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
}
STATE_BYTES = 4  # recurrent states are f32


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer keeps for each token of the KV cache."""

    kv_heads: int
    """0: this layer has no attention."""
    key_length: int
    value_length: int
    """0: keys alone are kept (MLA)."""
    sliding: bool = False


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Figures of a model; None is "not reported"."""

    architecture: str
    layers: tuple[Layer, ...]
    name: str | None = None
    quantisation: str | None = None
    heads: int | None = None
    embedding_length: int | None = None
    feed_forward_length: int | None = None
    context: int | None = None
    """Tokens it was trained for."""
    vocabulary: int | None = None
    sliding_window: int | None = None
    experts: int | None = None
    experts_used: int | None = None
    mla: bool = False
    pooling: int | None = None
    """Of a model for embeddings; see `gguf.PoolingType`."""
    state_bytes: int = 0
    """Bytes of recurrent state for each slot."""
    weight_bytes: int | None = None
    """All tensors."""
    read_bytes: int | None = None
    """Bytes of weights read for one token of one answer."""
    upper_bounds: tuple[str, ...] = ()
    """Why the KV cache may be smaller than computed, a sentence each."""


def read_shape(header: GgufHeader, *, file_bytes: int | None = None) -> ModelShape:
    """Read the shape of the model.

    Args:
        file_bytes: size of the whole file, all parts; its weights, where tensors are missing.

    Raises:
        PlanError: what the size of the KV cache follows from is missing or impossible.
    """
    values = HeaderValues(header.values)
    whole = header.complete and header.tensors and (values.number("split.count") or 1) == 1
    weights = (_sum(header.tensors) if whole else None) or file_bytes
    return ModelShape(
        architecture=values.architecture,
        layers=_layers(values),
        name=values.text("general.name"),
        quantisation=_quantisation(values.number("general.file_type")),
        heads=max(values.per_layer("attention.head_count"), default=None),
        embedding_length=values.own("embedding_length"),
        feed_forward_length=max(values.per_layer("feed_forward_length"), default=None),
        context=values.own("context_length"),
        vocabulary=values.vocabulary(),
        sliding_window=values.own("attention.sliding_window"),
        experts=values.own("expert_count"),
        experts_used=values.own("expert_used_count"),
        mla=_is_mla(values),
        pooling=values.own("pooling_type"),
        state_bytes=_state_bytes(values),
        weight_bytes=weights,
        read_bytes=_read_bytes(header, values) if whole else None,
        upper_bounds=_upper_bounds(values),
    )


def _layers(values: HeaderValues) -> tuple[Layer, ...]:
    if values.architecture in WITHOUT_CACHE:
        return ()
    kv_heads = values.per_layer("attention.head_count_kv") or values.per_layer(
        "attention.head_count"
    )
    if not any(kv_heads) and values.own("ssm.state_size") is None:
        raise PlanError(
            f"The header names no {values.architecture}.attention.head_count, so the size of the"
            " KV cache is not known: type the figures of the model instead."
        )
    interval = values.own("full_attention_interval")
    sliding = sliding_layers(values)
    recurrent = _recurrent_layers(values)
    layers = []
    for index in range(values.layers):
        heads = kv_heads[index] if kv_heads else 0
        if index in recurrent and interval is not None:
            heads = 0
        layers.append(_layer(values, heads, sliding=sliding is not None and sliding[index]))
    return tuple(layers[: values.layers - (values.own("attention.shared_kv_layers") or 0)])


def _layer(values: HeaderValues, kv_heads: int, *, sliding: bool) -> Layer:
    if kv_heads == 0:
        return Layer(0, 0, 0)
    if _is_mla(values):
        rank, rotated = values.own("attention.kv_lora_rank"), values.own("rope.dimension_count")
        return Layer(1, (rank or 0) + (rotated or 0), 0)
    suffix = "_swa" if sliding and values.own("attention.key_length_swa") else ""
    return Layer(
        kv_heads,
        values.own(f"attention.key_length{suffix}") or _head_length(values),
        values.own(f"attention.value_length{suffix}") or _head_length(values),
        sliding,
    )


def _head_length(values: HeaderValues) -> int:
    width = values.own("embedding_length")
    heads = max(values.per_layer("attention.head_count"), default=0)
    if not width or not heads:
        raise PlanError(
            "The header names neither attention.key_length nor embedding_length: type the figures"
            " of the model instead."
        )
    return width // heads


def _is_mla(values: HeaderValues) -> bool:
    """True where llama.cpp keeps the compressed keys alone; older conversions keep all heads."""
    return (
        values.own("attention.kv_lora_rank") is not None
        and values.own("attention.key_length_mla") is not None
    )


def _recurrent_layers(values: HeaderValues) -> set[int]:
    if values.own("ssm.state_size") is None:
        return set()
    interval = values.own("full_attention_interval")
    kv_heads = values.per_layer("attention.head_count_kv")
    if interval:
        return {index for index in range(values.layers) if (index + 1) % interval}
    if any(kv_heads) and not all(kv_heads):
        return {index for index, heads in enumerate(kv_heads) if heads == 0}
    return set(range(values.layers))


def _state_bytes(values: HeaderValues) -> int:
    """Convolution and state of each recurrent layer, as llama.cpp keeps them for a sequence."""
    inner, state = values.own("ssm.inner_size") or 0, values.own("ssm.state_size") or 0
    groups, kernel = values.own("ssm.group_count") or 0, values.own("ssm.conv_kernel") or 1
    convolution = (kernel - 1) * (inner + 2 * groups * state)
    return len(_recurrent_layers(values)) * (convolution + inner * state) * STATE_BYTES


def _upper_bounds(values: HeaderValues) -> tuple[str, ...]:
    found = []
    if values.own("attention.sliding_window") and sliding_layers(values) is None:
        found.append(
            "The model has a sliding window, but the file does not say in which layers: all are"
            " counted in full."
        )
    if values.own("attention.kv_lora_rank") and not _is_mla(values):
        found.append("The model has compressed keys (MLA), but its file keeps all heads.")
    if values.own("nextn_predict_layers"):
        found.append("Layers that predict further tokens (MTP) are counted, used or not.")
    if values.own("ssm.state_size") and any(values.per_layer("attention.head_count_kv")):
        found.append("Some layers are recurrent: their states are estimated.")
    return tuple(found)


def _quantisation(file_type: int | None) -> str | None:
    if file_type is None:
        return None
    try:
        return LlamaFileType(file_type).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    except ValueError:
        return None


def _sum(tensors: tuple[Tensor, ...]) -> int | None:
    sizes = [tensor.bytes for tensor in tensors]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _read_bytes(header: GgufHeader, values: HeaderValues) -> int | None:
    """Weights read for a token: without the token table (one row is) and experts not asked."""
    names = {tensor.name for tensor in header.tensors}
    experts, used = values.own("expert_count"), values.own("expert_used_count")
    total = 0
    for tensor in header.tensors:
        if tensor.bytes is None:
            return None
        if tensor.name == "token_embd.weight" and "output.weight" in names:
            continue
        share = used / experts if "_exps." in tensor.name and experts and used else 1.0
        total += int(tensor.bytes * share)
    return total or None
