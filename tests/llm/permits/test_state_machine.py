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
PARTS = ("", "people", "limit:", "models", "turns:", "prefixes:")


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
        self.queued: dict[str, tuple[Lane, int]] = {}

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

    @rule(lane=st.sampled_from([Lane.AGENT, Lane.BATCH]), tokens=st.integers(0, POOL))
    def program_asks(self, lane: Lane, tokens: int) -> None:
        self.ask_for_nobody(f"{lane}-{next(self.names)}", lane, tokens)

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def program_asks_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.queued)))
        self.ask_for_nobody(name, *self.queued.pop(name))

    def ask_for_nobody(self, name: str, lane: Lane, tokens: int) -> None:
        before = len(self.held)
        refusal = self.acquire(name, lane, 0, tokens)
        if refusal:
            self.queued[name] = lane, tokens
        if self.waiting and before + len(self.waiting) >= SLOTS:
            assert refusal, f"{lane} got a slot that a person waits for"
        agents = [one for one, _ in self.queued.values() if one is Lane.AGENT]
        if lane is Lane.BATCH and before + len(agents) >= SLOTS:
            assert refusal, "a row got a slot that an agent waits for"

    @rule(tokens=st.integers(0, POOL))
    def idle_work_asks(self, tokens: int) -> None:
        before = len(self.held) + len(self.waiting) + len(self.queued)
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
        self.waiting, self.queued = {}, {}

    def release(self, name: str) -> None:
        self.scripts["release"](keys=self.keys[:2], args=[name, "", 1000])
        del self.held[name]

    @invariant()
    def never_more_permits_than_slots(self) -> None:
        held = [one for one in self.entries().values() if one["lane"] not in {"waiting", "queued"}]
        assert len(held) <= SLOTS

    @invariant()
    def never_more_tokens_than_the_pool(self) -> None:
        if len(self.held) > 1:
            assert sum(tokens for _, tokens in self.held.values()) <= POOL

    @invariant()
    def nothing_is_lost(self) -> None:
        stored = self.entries()
        wait = {name for name, one in stored.items() if one["lane"] in {"waiting", "queued"}}
        assert stored.keys() - wait == set(self.held)
        assert wait == set(self.waiting) | set(self.queued)

    @invariant()
    def no_person_or_agent_loses_a_slot(self) -> None:
        stored = self.entries()
        for name, (lane, _) in self.held.items():
            if not lane.gives_way:
                assert stored[name]["lane"] == lane

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
