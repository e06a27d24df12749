"""The language of a text (pure)."""

from functools import lru_cache
from typing import Any

from apps.generation.recipe.problems import RecipeError


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import (  # type: ignore[import-untyped]  # slow to load: when needed
        MODEL_FILE,
        LanguageIdentifier,
    )

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def check_language(code: str) -> None:
    """
    Raises:
        RecipeError: unknown code.
    """
    known = sorted(_identifier().labels)
    if code not in known:
        raise RecipeError.one(f"Unknown language “{code}”. Use {', '.join(known)}.")


def language_of(text: str) -> tuple[str, float]:
    """(ISO 639-1 code, probability) by py3langid (Lui and Baldwin 2012, langid.py)."""
    code, probability = _identifier().classify(text)
    return str(code), float(probability)
