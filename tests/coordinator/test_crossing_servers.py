"""Links in a job with parameter servers: who tries whom, and whose answer is no fault."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Answer, Declared, Link, Phase, Who
from allaboard.facts.samples import sample_job, sample_member
from allaboard.protocol.events import AgentConnected, LinksProbed, RoleTaken
from allaboard.protocol.process_keys import process_key

CLUSTER = {"worker:0": "h0:9", "worker:1": "h1:9", "ps:0": "h2:9"}


def roll() -> RollCall:
    members = [
        sample_member(
            rank,
            who=Who(job=name, index=index, rank=rank, host=f"h{rank}", pid=1),
            key=process_key(rank, 1),
            phase=Phase.ARRIVED if rank == 0 else Phase.JOINED,
            declared=Declared(
                framework="tensorflow", call="Server", rank=rank, world_size=3, job=name,
                index=index, cluster=CLUSTER, hold=rank == 0,
            ),
        )
        for rank, (name, index) in enumerate([("worker", 0), ("worker", 1), ("ps", 0)])
    ]  # fmt: skip
    (found,) = find_roll_calls(sample_job(*members, joined=True, leads=True))
    return found


def test_workers_do_not_try_each_other() -> None:
    crossing = MultiHostState("h0", True)
    crossing.apply_event(RoleTaken(leads=True))
    asked = {
        c.agent: {host for host, _ in c.targets}
        for c in crossing.link_rounds.next_probes(1.0, roll())
    }
    assert asked == {0: {"h2"}, 1: {"h2"}, 2: {"h0", "h1"}}


def test_a_server_that_is_up_already_is_no_stranger_and_a_silent_one_is_a_fault() -> None:
    crossing = MultiHostState("h0", True)
    crossing.apply_event(RoleTaken(leads=True))
    assert list(crossing.link_rounds.next_probes(1.0, roll()))
    met = {"h2:9": Answer.GRPC, "h1:9": Answer.SILENT, "h0:9": Answer.GRPC}
    links = tuple(Link(source="x", target=a[:2], address=a, answer=b) for a, b in met.items())
    for agent in (0, 1, 2):
        crossing.apply_event(LinksProbed(agent=agent, links=links))
    assert sorted(k.address for k in crossing.view_fields()["links"]) == ["h0:9", "h1:9"]


def test_who_is_let_through_before_the_links_were_tried_is_no_stranger_either() -> None:
    crossing = MultiHostState("h0", True)
    crossing.apply_event(RoleTaken(leads=True))
    assert list(crossing.link_rounds.next_probes(1.0, roll()))
    crossing.link_rounds.note_opened_early(roll())
    link = Link(source="h2", target="h0", address="h0:9", answer=Answer.GRPC)
    for agent in (0, 1, 2):
        crossing.apply_event(LinksProbed(agent=agent, links=(link,) if agent == 2 else ()))
    assert not crossing.view_fields()["links"]


def refused(crossing: MultiHostState, at: float) -> list[str]:
    """What counts as a fault when the worker here is refused by the server, which is up since 50."""
    link = Link(source="h0", target="h2", address="h2:9", answer=Answer.REFUSED)
    for command in list(crossing.link_rounds.next_probes(at, roll())):
        links = (link,) if any(address == "h2:9" for _, address in command.targets) else ()
        crossing.apply_event(
            LinksProbed(agent=command.agent, links=links if command.agent == 0 else ())
        )
    return [k.address for k in crossing.view_fields()["links"] if not k.works]


def test_who_is_up_refuses_nobody() -> None:
    crossing = MultiHostState("h0", True)
    crossing.apply_event(RoleTaken(leads=True))
    assert refused(crossing, 60.0) == ["h2:9"]


def test_who_comes_up_may_refuse_and_is_asked_again_when_it_is_up() -> None:
    crossing = MultiHostState("h0", True)
    for event in (
        RoleTaken(leads=True),
        *(AgentConnected(agent=n, host=f"h{n}", probe_address="", rank=n) for n in range(3)),
    ):
        crossing.apply_event(event)
    assert refused(crossing, 50.5) == []
    assert not crossing.are_links_probed(51.0) and refused(crossing, 51.0) == []
    assert refused(crossing, 53.0) == ["h2:9"]
    assert crossing.are_links_probed(53.0)


def test_who_was_only_slow_to_come_up_is_no_fault() -> None:
    crossing = MultiHostState("h0", True)
    for event in (
        RoleTaken(leads=True),
        *(AgentConnected(agent=n, host=f"h{n}", probe_address="", rank=n) for n in range(3)),
    ):
        crossing.apply_event(event)
    assert refused(crossing, 50.5) == []
    (again,) = crossing.link_rounds.next_probes(53.0, roll())
    assert (again.agent, again.targets) == (0, (("h2", "h2:9"),))
    crossing.apply_event(LinksProbed(agent=0))
    assert crossing.are_links_probed(53.0) and not crossing.view_fields()["links"]
