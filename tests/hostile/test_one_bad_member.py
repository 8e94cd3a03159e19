"""A member whose reports cannot be used costs only itself: it is dropped, and the roll call goes on."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from msgspec import inspect as types

from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import Identity, shake_hands
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.member_budget import BURST_PROCESSES, MemberBudget
from allaboard.cluster.transport.wire import HostEvents, LinkTestResults
from allaboard.coordinator.fault_isolation import find_faulty_agent
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Answer, Link, Phase
from allaboard.facts.bounds import MAX_PHASE
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.commands import DropAgent, OpenGate, ShowNote
from allaboard.protocol.events import (
    AgentConnected,
    MemberFactsReported,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.protocol.process_keys import process_key
from allaboard.rules.engine.catalogue import load_catalogue
from rally import Rally

UNBOUNDED = {"digest"}
"""Numbers that are only compared, and may have 64 bits without a sign."""


def unbounded_numbers(kind: types.Type, name: str, known: set[type], path: str) -> list[str]:
    match kind:
        case types.IntType() | types.FloatType():
            is_bounded = kind.ge is not None and kind.le is not None
            return [] if is_bounded or name in UNBOUNDED else [path]
        case types.StructType():
            if kind.cls in known:
                return []
            known.add(kind.cls)
            return [
                p
                for f in kind.fields
                for p in unbounded_numbers(f.type, f.name, known, f"{kind.cls.__name__}.{f.name}")
            ]
        case types.UnionType():
            return [p for t in kind.types for p in unbounded_numbers(t, name, known, path)]
        case types.VarTupleType():
            return unbounded_numbers(kind.item_type, name, known, path)
        case types.TupleType():
            return [p for t in kind.item_types for p in unbounded_numbers(t, name, known, path)]
        case types.DictType():
            return unbounded_numbers(kind.value_type, name, known, path)
    return []


def test_every_number_on_the_wire_has_bounds() -> None:
    assert unbounded_numbers(types.type_info(wire.Message), "", set(), "") == []
    assert max(Phase) == MAX_PHASE


def frame(event: str) -> bytes:
    data = f'{{"type":"HostEvents","events":[{event}],"mono":1.0}}'.encode()
    return wire.LENGTH_PREFIX.pack(len(data)) + data


def seen(box: str, more: str = "") -> str:
    head = '"type":"ProcessSampled","pid":7,"worker":0,"sampled_at":1.0,"state":"S","cpu":0.0'
    return f'{{{head},"box":{{"phase":4,"phase_since":1.0,"round":1,{box}}}{more}}}'


BAD = {
    "a phase that there is not": seen('"step":0').replace('"phase":4', '"phase":99'),
    "a time beyond all clocks": seen('"step":0').replace(
        '"phase_since":1.0', '"phase_since":1e300'
    ),
    "a worker of another host's number": seen('"step":0').replace('"worker":0', '"worker":99999'),
    "a pid of another host": seen('"step":0').replace('"pid":7', '"pid":4294967303'),
    "a rank below -1": seen('"step":0', ',"rank":-7'),
    "a number beyond 64 bits": seen(f'"ops":{1 << 80}'),
}


@pytest.mark.parametrize("event", BAD.values(), ids=BAD)
def test_a_value_out_of_bounds_is_no_message(event: str) -> None:
    with pytest.raises(wire.GarbledMessageError):
        wire.take_message(frame(event), wire.MAX_MEMBER_FRAME_BYTES)


def test_the_same_message_with_ordinary_values_is_one() -> None:
    message, _ = wire.take_message(frame(seen('"step":0')), wire.MAX_MEMBER_FRAME_BYTES)
    assert isinstance(message, HostEvents)


async def bad_member(rally: Rally, data: bytes) -> bool:
    """A member that says this; returns whether it was hung up on."""
    result = await connect_and_greet(rally.address)
    assert result.reader is not None and result.writer is not None
    await shake_hands(result, Identity("job=1", b"", "bad", 9, "127.0.0.1:1", "bad session"))
    try:
        result.writer.write(data)
        while await result.reader.read(1 << 16):
            pass
    except OSError:
        pass
    finally:
        result.writer.close()
    return True


def many_processes() -> bytes:
    now = time.monotonic()
    one = ProcessSampled(pid=1, worker=0, sampled_at=now, state="S", cpu=0.0)
    events = tuple(msgspec.structs.replace(one, pid=n) for n in range(1, BURST_PROCESSES + 3))
    return wire.encode_frame(HostEvents(events=events, mono=now))


@pytest.mark.parametrize("attack", ["a phase that there is not", "many processes"])
def test_the_roll_call_goes_on_without_it_and_names_it(attack: str) -> None:
    data = many_processes() if attack == "many processes" else frame(BAD[attack])

    async def main() -> tuple[set[int], list[str]]:
        async with asyncio.timeout(20), Rally(3) as rally:
            assert await bad_member(rally, data)
            notes = [c.text for c in rally.leader.take_notes() if isinstance(c, ShowNote)]
            await rally.all_aboard()
            return rally.through, notes

    through, notes = asyncio.run(main())
    assert through == {0, 1, 2}
    assert len(notes) == 1 and notes[0].startswith("bad (127.0.0.1) is dropped from the roll call")


def test_links_that_nobody_asked_for_cost_nothing() -> None:
    link = Link(source="x", target="h1", address="h1:1", answer=Answer.SILENT)
    links = tuple(msgspec.structs.replace(link, target=f"t{n}") for n in range(20_000))

    async def main() -> tuple[set[int], float]:
        async with asyncio.timeout(30), Rally(3) as rally:
            flood = asyncio.ensure_future(
                bad_member(rally, wire.encode_frame(LinkTestResults(links=links)))
            )
            cpu = time.process_time()
            await rally.all_aboard()
            flood.cancel()
            return rally.through, time.process_time() - cpu

    through, cpu = asyncio.run(main())
    assert through == {0, 1, 2} and cpu < 5


def three_hosts() -> tuple[JobState, list[ProcessSampled]]:
    """Rank 0 leads here; ranks 1 and 2 and a fourth agent have come."""
    settings = JobSettings(launched=1, host="h0", joined=True, rank=0)
    job = JobState(settings, 10.0, load_catalogue().entries, str)
    agents = [AgentConnected(agent=n, host=f"h{n}", probe_address="", rank=n) for n in range(4)]
    job.handle(
        10.0, RoleTaken(leads=True), WorkerLaunched(worker=0, pid=7, launched_at=10.0), *agents
    )
    samples = []
    for n in range(3):
        declared = sample_declaration(n, 3)
        box = BoxReading(phase=Phase.ARRIVED, phase_since=10.0, round=1, declared=declared)
        key = process_key(n, 7)
        samples.append(
            ProcessSampled(
                pid=key, worker=n << 12, sampled_at=10.0, state="S", cpu=0.0, box=box, host=f"h{n}"
            )
        )
    return job, samples


def test_what_the_state_cannot_judge_drops_its_sender_alone() -> None:
    job, samples = three_hosts()
    # As if a value had no bound on the wire
    bad_box = BoxReading(phase=99, phase_since=10.0, round=1)
    bad = ProcessSampled(
        pid=process_key(3, 7), worker=3 << 12, sampled_at=10.0, state="S", cpu=0.0, box=bad_box
    )
    facts = [MemberFactsReported(pid=s.pid, facts={"a": "b"}) for s in samples]
    commands = job.handle(11.0, *samples, *facts, bad)
    (drop,) = [c for c in commands if isinstance(c, DropAgent)]
    assert drop.agent == 3 and "IndexError" in drop.reason
    gates = [c for t in (12.0, 40.0) for c in job.handle(t) if isinstance(c, OpenGate)]
    assert {g.pid for g in gates} == {s.pid for s in samples}


def test_a_fault_of_our_own_blames_nobody() -> None:
    assert find_faulty_agent((1, 2, 3), lambda kept: True) == 0
    assert find_faulty_agent(range(1, 5000), lambda kept: 4711 in kept) == 4711
    assert find_faulty_agent((1, 2, 3, 4), lambda kept: {1, 4} <= set(kept)) == 0
    assert find_faulty_agent((), lambda kept: False) == 0


def test_the_budget_of_a_busy_host_is_never_exceeded() -> None:
    budget = MemberBudget(0.0)
    sample = ProcessSampled(pid=1, worker=0, sampled_at=0.0, state="S", cpu=0.0)
    for tick in range(4000):  # 64 ranks, four looks a second, 20 kB of stacks each
        events = tuple(msgspec.structs.replace(sample, pid=n) for n in range(64))
        message = HostEvents(events=events, mono=0.0)
        now = tick * 0.25
        assert not budget.take_bytes(320_000, now) and not budget.take_message(message, now)
