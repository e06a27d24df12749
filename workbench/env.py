"""Reading the environment: one function per type, each error naming the variable and the remedy."""

import os
import re
import secrets
import shlex
from ipaddress import ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The value of `name`, or of the file named by `name`_FILE (a mounted secret)."""
    file = os.environ.get(f"{name}_FILE")
    if file:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(
                f"{name}_FILE: cannot read {file}: {error.strerror}."
            ) from error
    # An empty variable means "not set": compose files and Makefiles pass them along that way.
    return os.environ.get(name, "").strip() or default


def integer(name: str, default: int) -> int:
    value = text(name)
    try:
        return int(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from error


def seconds(name: str, default: float) -> float:
    value = text(name)
    try:
        found = float(value) if value else default
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ImproperlyConfigured(f"{name} must be a number of seconds, not {value!r}.")
    return found


def boolean(name: str, default: bool = False) -> bool:
    value = text(name).lower()
    if not value:
        return default
    if value not in TRUE | FALSE:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return value in TRUE


def optional_boolean(name: str) -> bool | None:
    """None where nothing is said: neither answer may then be assumed."""
    return boolean(name) if text(name) else None


def words(name: str, default: list[str]) -> list[str]:
    """A comma-separated list."""
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else default


def flags(name: str) -> list[str]:
    """Words as a shell splits them: `-ngl 99 --chat-template-file "my file"`."""
    try:
        return shlex.split(text(name))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def networks(name: str) -> list[str]:
    """A comma-separated list of addresses and networks, as in 10.0.0.0/8."""
    found = words(name, [])
    for word in found:
        try:
            ip_network(word)
        except ValueError as error:
            detail = f"{name} takes addresses and networks, as in 10.0.0.0/8, not {word!r}."
            raise ImproperlyConfigured(detail) from error
    return found


def figures(name: str, defaults: dict[str, int]) -> dict[str, int]:
    """The defaults, with those that `name` changes: `questions=10, previews=2`."""
    found = dict(defaults)
    for word in words(name, []):
        key, _, value = (part.strip() for part in word.partition("="))
        if key not in defaults or not value.isdecimal() or len(value) > 9:
            known = ", ".join(f"{key}={value}" for key, value in defaults.items())
            raise ImproperlyConfigured(f"{name} takes figures as in {known}. It has {word!r}.")
        found[key] = int(value)
    return found


def prices(name: str, items: tuple[str, ...]) -> dict[str, float]:
    """Prices by item: `in=0.15, cached=0.05, out=0.6`. Empty where none is set."""
    found = {}
    for word in words(name, []):
        item, _, value = (part.strip() for part in word.partition("="))
        if item not in items or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
            example = ",".join(f"{item}=0.5" for item in items)
            raise ImproperlyConfigured(f"{name} takes prices as in {example}. It has {word!r}.")
        found[item] = float(value)
    return found


def file(name: str) -> str:
    """The path of a file that is there and can be read; "" where none is named."""
    path = os.environ.get(name, "").strip()
    if path:
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise ImproperlyConfigured(f"{name}: cannot read {path}: {error.strerror}.") from error
    return path


def kept_secret(path: Path) -> str:
    """A random secret that is made once and kept in a file only its user can read."""
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written under a name of our own and linked into place: when several processes start at once
    # the first link wins and everybody reads the same secret.
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii")
