"""The values of a GGUF header by name, checked (pure)."""

from collections.abc import Mapping

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import Skipped, Value

MAX_LAYERS = 1024
MAX_FIGURE = 2**40
TOKENS = "tokenizer.ggml.tokens"


class HeaderValues:
    """Keys of the model's own architecture are asked for without its name."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        architecture = self.text("general.architecture")
        if not architecture:
            raise PlanError(
                "The header does not name the model's architecture (general.architecture): this is"
                " no model, or its first megabytes are damaged."
            )
        self.architecture = architecture
        self.layers = self._layer_count()

    def text(self, key: str) -> str | None:
        found = self._values.get(key)
        return found if isinstance(found, str) else None

    def number(self, key: str) -> int | None:
        """Return a whole number that is not negative; None where there is none."""
        found = self._values.get(key)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MAX_FIGURE:
            return None
        return found

    def own(self, key: str) -> int | None:
        """Return the number of an architecture's key that is not 0."""
        return self.number(f"{self.architecture}.{key}") or None

    def per_layer(self, key: str) -> tuple[int, ...]:
        """Return a number for each layer, from an array or one number; () where there is none."""
        found = self.array(key)
        if found:
            return found
        one = self.own(key)
        return (one,) * self.layers if one is not None else ()

    def array(self, key: str) -> tuple[int, ...]:
        """Return an array's numbers, one a layer; () where there is none that fits."""
        found = self._values.get(f"{self.architecture}.{key}")
        if not isinstance(found, tuple) or len(found) < self.layers:
            return ()
        numbers = tuple(int(value) for value in found if isinstance(value, int))
        if len(numbers) < len(found) or not all(0 <= value <= MAX_FIGURE for value in numbers):
            return ()
        return numbers[: self.layers]

    def vocabulary(self) -> int | None:
        tokens = self._values.get(TOKENS)
        return tokens.length if isinstance(tokens, Skipped) else self.own("vocab_size")

    def _layer_count(self) -> int:
        key = f"{self.architecture}.block_count"
        found = self.number(key)
        if not found or found > MAX_LAYERS:
            said = "is missing" if found is None else f"is {found}"
            raise PlanError(
                f"The number of layers ({key}) {said}; 1 to {MAX_LAYERS} are possible: type the"
                " figures of the model instead."
            )
        return found
