"""The menu of models: favourites, then servers, those that are offline last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from apps.chat.models import Conversation, Preferences
from apps.chat.presets import model_choices
from apps.chat.presets.model_choices import ModelChoice
from apps.llm.permits import busy_slots
from apps.servers.models import Server, State

OFFLINE = frozenset({State.UNREACHABLE, State.UNAUTHORIZED})
MAX_FAVOURITES = 20


@dataclass(frozen=True)
class ModelRow:
    """One model in the menu."""

    choice: ModelChoice
    busy: int
    """Slots of its server that Workbench uses now."""
    is_favourite: bool = False
    is_chosen: bool = False
    is_added: bool = False
    """True if it answers next to the first."""

    @property
    def server(self) -> Server:
        return self.choice.server

    @property
    def is_offline(self) -> bool:
        return self.server.state in OFFLINE

    @property
    def status(self) -> str:
        """State for the dot."""
        ready = self.server.state == State.READY and not self.choice.note
        return "ready" if ready else str(self.server.state) if self.is_offline else "unknown"

    @property
    def note(self) -> str:
        """State in words; "" if it can answer now."""
        if self.server.state != State.READY:
            return str(self.server.get_state_display())
        return self.choice.note.capitalize()

    @property
    def load(self) -> str:
        """Slots in use, "" while that means nothing."""
        if self.is_offline or self.choice.note:
            return ""
        if self.server.assumes_slots(self.choice.model):
            return f"{self.busy} busy" if self.busy else ""
        slots = self.server.slots_of(self.choice.model)
        return f"{min(self.busy, slots)} of {slots} busy"

    @property
    def abilities(self) -> list[tuple[str, str]]:
        """Icon and name of what the model is known to do."""
        facts = self.server.facts_of(self.choice.model)
        tools = facts.abilities.get("tools")
        known = [("eye", "Images", facts.vision), ("thinking", "Thinking", facts.reasoning)]
        return [(icon, name) for icon, name, can in (*known, ("wrench", "Tools", tools)) if can]


@dataclass(frozen=True)
class ModelGroup:
    name: str
    rows: Sequence[ModelRow]
    has_other_servers: bool = False
    """True if its name is not that of the server of its models."""


def model_groups(chat: Conversation, person: User) -> list[ModelGroup]:
    """Return the groups of the menu. Embedding models are not listed."""
    found = model_choices.list_models(keep=chat.server_id)
    busy = busy_slots([server.pk for server, _ in found]) if found else {}
    favourites = favourites_of(person)
    rows = [_row(chat, model, busy, favourites) for _, models in found for model in models]
    first = ModelGroup(
        "Favourites", [row for row in rows if row.is_favourite], has_other_servers=True
    )
    rest = [
        ModelGroup(
            server.name, [r for r in rows if r.server.pk == server.pk and r not in first.rows]
        )
        for server, _ in sorted(found, key=lambda pair: pair[0].state in OFFLINE)
    ]
    return [group for group in (first, *rest) if group.rows]


def _row(
    chat: Conversation, model: ModelChoice, busy: Mapping[int, int], favourites: Sequence[str]
) -> ModelRow:
    return ModelRow(
        model,
        busy.get(model.server.pk, 0),
        is_favourite=model.key in favourites and model.server.state not in OFFLINE,
        is_chosen=model.key == model_choices.key_of(chat.server_id, chat.model),
        is_added=model.key in chat.other_models,
    )


def favourites_of(person: User) -> list[str]:
    found = Preferences.objects.filter(owner=person).values_list("favourite_models", flat=True)
    return next(iter(found), [])


def toggle_favourite(person: User, key: str) -> None:
    """Make a model a favourite, or no longer.

    Raises:
        ModelNotAvailable: no such server.
    """
    model_choices.parse_key(key)
    kept = favourites_of(person)
    now = [one for one in kept if one != key] if key in kept else [*kept, key][-MAX_FAVOURITES:]
    Preferences.objects.update_or_create(owner=person, defaults={"favourite_models": now})
