"""What a page is in when its picture is taken."""

from enum import StrEnum


class State(StrEnum):
    EMPTY = "empty"
    TYPICAL = "typical"
    LONG = "long"
    ERROR = "error"


def state_of(scene: str) -> State:
    """Return the state that the name of a scene ends with; typical if it names none."""
    ending = scene.rpartition("-")[2]
    return State(ending) if ending in set(State) else State.TYPICAL


def scene_name(page: str, state: State) -> str:
    """Return the name of the scene of a page in a state."""
    return page if state is State.TYPICAL else f"{page}-{state}"
