"""What has to be true of every backend. A check that says nothing about one is skipped."""

from collections.abc import Awaitable, Callable

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench

Check = Callable[[Backend, Workbench], Awaitable[None]]


def all_checks() -> dict[str, Check]:
    """By the name in the table, in the order in which they run: outages at the end."""
    from tests.backends.checks import chat, discovery, embeddings, errors, jobs, outages, swapping

    return {
        "discovery": discovery.every_fact,
        "chat": chat.three_turns,
        "stop": chat.stop_frees_the_slot,
        "job": jobs.a_hundred_rows,
        "embeddings": embeddings.a_classifier,
        "switch": swapping.switch_of_models,
        "thrash": swapping.a_person_before_a_job,
        "wrong key": errors.a_wrong_key,
        "unknown model": errors.an_unknown_model,
        "broken model": errors.a_broken_model,
        "long prompt": errors.a_prompt_too_long,
        "address": errors.a_forgotten_part_of_the_address,
        "gone": outages.gone_and_back_for_a_person,
        "killed in a chat": outages.killed_in_the_middle_of_an_answer,
        "killed in a job": outages.killed_in_the_middle_of_a_job,
    }
