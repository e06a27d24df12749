"""Reads a small YAML text from a person: bounded in depth and in what its anchors may grow to."""

import yaml

from apps.tuning.errors import PlanError

MAX_DEPTH = 16
MAX_ALIASES = 64


def read_yaml(text: str) -> object:
    """Return its one document, in plain Python values.

    Raises:
        PlanError: it is no YAML, too deep, or its anchors hold others and could grow without end.
    """
    try:
        _check(text)
        found: object = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PlanError(f"Line {line} is not YAML: {error.problem or 'it is damaged'}.") from error
    # A value that its tag does not suit, such as `!!bool maybe`, is one of the last two.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise PlanError(f"This is not YAML: {error}.") from error
    return found


def _check(text: str) -> None:
    depth, aliases = 0, 0
    anchored: list[int] = []  # depths at which an anchor is open
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if event.anchor:
                anchored.append(depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            if anchored and anchored[-1] == depth:
                anchored.pop()
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
            if anchored or aliases > MAX_ALIASES:
                raise PlanError(
                    f"An anchor of the YAML holds another, or there are more than {MAX_ALIASES}"
                    " aliases: write the values out."
                )
        if depth > MAX_DEPTH:
            raise PlanError(f"The YAML is nested more than {MAX_DEPTH} levels deep.")
