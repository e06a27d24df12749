"""Permits as a state machine: any order of acquire, release and revocation, on a real Redis."""

import itertools
import json
from pathlib import Path

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from apps.llm.permits import Lane, SlotTerms
from apps.llm.permits.keys import permit_key
from apps.llm.permits.permit import script_source
from tests.environment import REDIS_SOCKET

SERVER = 71
SLOTS = 3
POOL = 1000
LONG_MS = 600_000
PARTS = ("", "people", "limit:", "models", "turns:")


class Permits(RuleBasedStateMachine):
    """Drives the Lua scripts as several processes would, and compares them with a simple model."""

    def __init__(self) -> None:
        super().__init__()
        self.client = redis.Redis(unix_socket_path=str(Path(REDIS_SOCKET)))
        self.keys = [permit_key(SERVER, part) for part in PARTS]
        for key in self.client.scan_iter(f"{permit_key(SERVER)}*"):
            self.client.delete(key)
        self.client.set("slots:kept", 1)
        self.scripts = {
            name: self.client.register_script(script_source(name))
            for name in ("acquire", "renew", "release")
        }
        self.terms = SlotTerms(server_id=SERVER, slots=SLOTS, pool=POOL)
        self.names = itertools.count()
        self.held: dict[str, tuple[Lane, int]] = {}
        self.waiting: dict[str, tuple[int, int]] = {}

    def teardown(self) -> None:
        self.client.close()

    def entries(self) -> dict[str, dict[str, object]]:
        stored = self.client.hgetall(permit_key(SERVER))
        return {name.decode(): json.loads(entry) for name, entry in stored.items()}

    def acquire(self, name: str, lane: Lane, person: int, tokens: int) -> str:
        claim = {
            "lane": lane,
            "scope": "",
            "model": "",
            "label": "",
            "owner": person,
            "person": str(person) if lane is Lane.INTERACTIVE else "",
            "tokens": tokens,
        }
        # Nothing lapses while the test runs, however busy the machine is.
        terms = self.terms.as_arguments() | {"lease": LONG_MS, "waiter": LONG_MS}
        arguments = [name, json.dumps(claim), json.dumps(terms)]
        refusal = self.scripts["acquire"](keys=self.keys, args=arguments).decode()
        if not refusal:
            self.held[name] = lane, tokens
        return refusal

    @rule(tokens=st.integers(0, POOL))
    def row_asks(self, tokens: int) -> None:
        before = len(self.held)
        refusal = self.acquire(f"row-{next(self.names)}", Lane.BATCH, 0, tokens)
        if self.waiting and before + len(self.waiting) >= SLOTS:
            assert refusal, "a row got a slot that a person waits for"

    @rule(tokens=st.integers(0, POOL))
    def idle_work_asks(self, tokens: int) -> None:
        before = len(self.held) + len(self.waiting)
        refusal = self.acquire(f"idle-{next(self.names)}", Lane.IDLE, 0, tokens)
        assert refusal or before < SLOTS

    @rule(person=st.integers(1, 4), tokens=st.integers(0, POOL))
    def person_asks(self, person: int, tokens: int) -> None:
        name = f"person-{next(self.names)}"
        if self.acquire(name, Lane.INTERACTIVE, person, tokens):
            self.waiting[name] = person, tokens

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def waiter_asks_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.waiting)))
        person, tokens = self.waiting[name]
        if not self.acquire(name, Lane.INTERACTIVE, person, tokens):
            del self.waiting[name]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def holder_releases(self, data: st.DataObject) -> None:
        self.release(data.draw(st.sampled_from(sorted(self.held))))

    @rule()
    def revoked_holders_release(self) -> None:
        """As the holders do that are told of it."""
        for name, entry in self.entries().items():
            if entry["lane"] == "revoked":
                self.release(name)

    @rule()
    def redis_loses_everything_and_holders_renew(self) -> None:
        claims = self.entries()
        self.client.delete(permit_key(SERVER))
        arguments: list[object] = [LONG_MS]
        for name in self.held:
            arguments += [name, json.dumps(claims[name])]
        self.scripts["renew"](keys=self.keys[:2], args=arguments)
        self.waiting = {}

    def release(self, name: str) -> None:
        self.scripts["release"](keys=self.keys[:2], args=[name, "", 1000])
        del self.held[name]

    @invariant()
    def never_more_permits_than_slots(self) -> None:
        held = [entry for entry in self.entries().values() if entry["lane"] != "waiting"]
        assert len(held) <= SLOTS

    @invariant()
    def never_more_tokens_than_the_pool(self) -> None:
        if len(self.held) > 1:
            assert sum(tokens for _, tokens in self.held.values()) <= POOL

    @invariant()
    def nothing_is_lost(self) -> None:
        stored = self.entries()
        held = {name for name, entry in stored.items() if entry["lane"] != "waiting"}
        assert held == set(self.held)
        waiting = {name for name, entry in stored.items() if entry["lane"] == "waiting"}
        assert waiting == set(self.waiting)

    @invariant()
    def no_person_loses_a_slot(self) -> None:
        stored = self.entries()
        for name, (lane, _) in self.held.items():
            if lane is Lane.INTERACTIVE:
                assert stored[name]["lane"] == "interactive"

    @invariant()
    def people_come_first(self) -> None:
        """While a person waits with all slots busy, a request of a lower lane is being closed."""
        lanes = [entry["lane"] for entry in self.entries().values()]
        if self.waiting and len(self.held) == SLOTS and {"batch", "idle"} & set(lanes):
            assert "revoked" in lanes


TestPermits = Permits.TestCase
TestPermits.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
