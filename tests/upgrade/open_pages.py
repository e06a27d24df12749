"""Opens every page and every list of the API as alice and as an admin; prints JSON.

{person: {address: [status, text]}}: `python -m tests.upgrade.open_pages`.
"""

import json
import re
import sys
from collections.abc import Iterator

import django

PLACEHOLDER = re.compile(r"<(?:\w+:)?(\w+)>")


def main() -> None:
    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client

    out: dict[str, dict[str, tuple[int, str]]] = {}
    for person in ("alice", "carol"):
        client = Client(SERVER_NAME="localhost", raise_request_exception=False)
        client.force_login(User.objects.get(username=person))
        out[person] = {}
        for address in addresses():
            answer = client.get(address)
            body = b"" if answer.streaming else answer.content
            out[person][address] = answer.status_code, body.decode(errors="replace")
    json.dump(out, sys.stdout)


def addresses() -> list[str]:
    """Every pattern that can be filled in from what is in the database."""
    from django.urls import get_resolver

    known = objects()
    found = []
    for pattern in patterns(get_resolver()):
        room = known.get(pattern.split("/")[3 if pattern.startswith("/api/") else 1], {})
        names = PLACEHOLDER.findall(pattern)
        if all(name in room for name in names) and not pattern.startswith(("/logout", "/login")):
            found.append(PLACEHOLDER.sub(lambda match, room=room: room[match[1]], pattern))
    return sorted(set(found))


def objects() -> dict[str, dict[str, str]]:
    """For each first part of an address: what its placeholders are filled with."""
    from apps.chat.models import Conversation
    from apps.classifiers.models import Classifier
    from apps.datasets.models import Dataset
    from apps.generation.models import Job
    from apps.mcp.models import ToolServer
    from apps.servers.models import Server

    talk = {"pk": str(Conversation.objects.get(title="Kettles").pk)}
    data = {"pk": str(Dataset.objects.get(name="Topics").pk)}
    classifier = {"pk": str(Classifier.objects.get().pk), "number": "1"}
    job = {"pk": str(Job.objects.earliest("pk").pk), "index": "0"}
    return {
        "chat": talk,
        "conversations": talk,
        "datasets": data | {"index": "0"},
        "classify": classifier,
        "classifiers": classifier,
        "generate": job,
        "jobs": job,
        "servers": {"pk": str(Server.objects.earliest("pk").pk)},
        "tools": {"pk": str(ToolServer.objects.get().pk)},
    }


def patterns(resolver: "URLResolver", prefix: str = "/") -> Iterator[str]:  # noqa: F821
    from django.urls import URLResolver

    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, path)
        else:
            yield path


if __name__ == "__main__":
    main()
