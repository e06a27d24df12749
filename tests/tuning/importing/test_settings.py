"""Words as settings: names, values, what is hidden and what is wrong."""

import pytest

from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.settings import Settings, read_settings
from apps.tuning.importing.written import WrittenServer


def of_words(*words: str) -> Settings:
    return read_settings(WrittenServer("a", words), shipped_table())


def of_ini(*words: str) -> Settings:
    return read_settings(WrittenServer("a", words, from_ini=True), shipped_table())


@pytest.mark.parametrize("name", ["-c", "--ctx-size", "--ctx_size"])
def test_every_name_of_an_argument_is_the_same(name: str) -> None:
    settings = of_words(name, "4096")
    assert settings.number("--ctx-size") == 4096
    assert settings.number("-c") == 4096
    assert not settings.has("--parallel")
    assert settings.number("--parallel") is None


def test_the_last_of_several_values_counts() -> None:
    assert of_words("-c", "1024", "--ctx-size", "2048").number("-c") == 2048
    assert of_words("-kvu", "-no-kvu").last_name("--kv-unified") == "-no-kvu"


def test_a_wrong_value_does_not_count() -> None:
    settings = of_words("-c", "1024", "-c", "many")
    assert settings.number("-c") == 1024
    assert [setting.problem is None for setting in settings.all] == [True, False]


def test_negative_numbers_are_values_and_flags_are_not() -> None:
    settings = of_words("-n", "-1", "-fa", "--metrics")
    assert settings.value("-n") == "-1"
    assert [setting.safe_text for setting in settings.all] == ["-n -1", "-fa", "--metrics"]
    assert settings.has("--metrics")
    assert not settings.has("--flash-attn")


def test_an_argument_of_two_values_takes_both() -> None:
    settings = of_words("--control-vector-layer-range", "3", "9", "-c", "512")
    assert settings.value("--control-vector-layer-range") == "3 9"
    assert settings.number("-c") == 512


def test_an_unknown_flag_takes_its_value_with_it() -> None:
    unknown, known = of_words("--frobnicate", "4", "-c", "512").all
    assert (unknown.safe_text, unknown.meaning) == ("--frobnicate 4", "")
    assert known.problem is None


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("metrics=true", "--metrics"),
        ("kv-unified=false", "--no-kv-unified"),
        ("kv-unified=off", "--no-kv-unified"),
        ("no-kv-unified=false", "--kv-unified"),
        ("no-kv-unified=1", "--no-kv-unified"),
        ("perf=no", "--perf"),
        ("metrics=disabled", "--metrics disabled"),
        ("c=512", "-c 512"),
        ("np=2", "-np 2"),
        ("LLAMA_ARG_CTX_SIZE=512", "LLAMA_ARG_CTX_SIZE 512"),
    ],
)
def test_keys_of_an_ini_are_flags_without_dashes(word: str, shown: str) -> None:
    [setting] = of_ini(word).all
    assert (setting.safe_text, setting.problem) == (shown, None)


def test_a_switch_that_is_off_is_not_given() -> None:
    settings = of_ini("metrics=false", "kv-unified=0")
    assert not settings.has("--metrics")
    assert settings.last_name("--kv-unified") == "--no-kv-unified"


@pytest.mark.parametrize("word", ["--ctx-size=512", "-c=512", "ctx_size=512"])
def test_keys_that_a_router_does_not_read_are_problems(word: str) -> None:
    [setting] = of_ini(word).all
    assert setting.problem is not None
    assert of_ini(word).number("--ctx-size") is None


@pytest.mark.parametrize(
    "settings",
    [
        of_words("--api-key", "sk-1"),
        of_words("-hft", "sk-1"),
        of_words("LLAMA_API_KEY=sk-1"),
        of_ini("api-key=sk-1"),
        of_words("--api_key", "sk-1"),
        of_words("--api-key=sk-1"),
        of_words("--openai-api-key", "sk-1"),
    ],
)
def test_keys_are_never_shown(settings: Settings) -> None:
    for setting in settings.all:
        assert "sk-1" not in setting.safe_text
        assert "sk-1" not in (setting.problem or "")


def test_endless_values_and_names_are_cut() -> None:
    [value] = of_words("--alias", "a" * 5000).all
    assert len(value.safe_text) < 250
    [name] = of_words(f"--{'b' * 5000}").all
    assert len(name.safe_text) < 250
    assert len(name.problem or "") < 400
