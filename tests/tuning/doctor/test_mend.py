"""Command lines as they are, and as findings propose them."""

from apps.tuning.doctor.mend import Change, propose
from apps.tuning.importing.flag_table import shipped_table

TABLE = shipped_table()
COMMAND = (
    "/usr/bin/llama-server -m qwen.gguf --ctx-size 2048 -np 8 --no-cache-prompt --api-key ••••"
)


def test_a_proposed_flag_replaces_all_its_names() -> None:
    mend = propose(COMMAND, ["-c 32768", "-np 8", "--cache-prompt"], TABLE)
    assert mend is not None
    assert mend.is_complete
    assert mend.changes == [
        Change(" ", "/usr/bin/llama-server"),
        Change(" ", "-m qwen.gguf"),
        Change("-", "--ctx-size 2048"),
        Change(" ", "-np 8"),
        Change("-", "--no-cache-prompt"),
        Change(" ", "--api-key ••••"),
        Change("+", "-c 32768"),
        Change("+", "--cache-prompt"),
    ]
    assert mend.command.splitlines() == [
        "/usr/bin/llama-server \\",
        "  -m qwen.gguf \\",
        "  --api-key •••• \\",
        "  -c 32768 \\",
        "  -np 8 \\",
        "  --cache-prompt",
    ]


def test_a_flag_with_an_equals_sign_and_an_unknown_one_stay_whole() -> None:
    mend = propose("llama-server --ctx-size=512 --new-flag 7 --jinja", ["-c 4096"], TABLE)
    assert mend is not None
    texts = [(change.sign, change.text) for change in mend.changes]
    assert texts == [
        (" ", "llama-server"),
        ("-", "--ctx-size=512"),
        (" ", "--new-flag 7"),
        (" ", "--jinja"),
        ("+", "-c 4096"),
    ]


def test_without_a_reported_command_the_flags_are_to_be_added() -> None:
    mend = propose("", ["-np 4", "-c 16384", "-np 2"], TABLE)
    assert mend is not None
    assert not mend.is_complete
    assert [(change.sign, change.text) for change in mend.changes] == [
        ("+", "-np 2"),
        ("+", "-c 16384"),
    ]


def test_lines_of_yaml_and_a_cut_command_are_read() -> None:
    mend = propose("llama-server \\\n  -np 2 \\\n  --alias 'a b", ["--metrics"], TABLE)
    assert mend is not None
    assert mend.changes[-1] == Change("+", "--metrics")
    assert mend.changes[1] == Change(" ", "-np 2")


def test_findings_without_flags_propose_nothing() -> None:
    assert propose(COMMAND, [], TABLE) is None
