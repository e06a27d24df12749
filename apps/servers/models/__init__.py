"""Model servers, their last known facts, and the defaults of each use."""

from apps.servers.facts.server_facts import ModelFacts
from apps.servers.models.choices import Kind, State, Use
from apps.servers.models.default_server import DefaultServer
from apps.servers.models.server import Server
from apps.servers.models.slot_file import SlotFile, SlotRestores

__all__ = [
    "DefaultServer",
    "Kind",
    "ModelFacts",
    "Server",
    "SlotFile",
    "SlotRestores",
    "State",
    "Use",
]
