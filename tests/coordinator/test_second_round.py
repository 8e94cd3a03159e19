"""Beyond all pairs, what failed is tried the other way round before anything is judged."""

from __future__ import annotations

from allaboard.analysis.network.link_faults import NO_CONNECTION_ANSWERS, find_link_faults
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.cluster.transport.link_trial import LINK_FIGURES
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Answer, Link
from allaboard.facts.samples import arrived_member, gathering_job, sample_declaration
from allaboard.protocol.commands import ProbeLinks
from allaboard.protocol.events import AgentConnected, LinksProbed, RoleTaken

HOSTS = 70


def answered(
    crossing: MultiHostState, asked: ProbeLinks, dead: tuple[tuple[int, int], ...]
) -> None:
    """What this agent tells of the links that it was asked for."""
    failed, figures = [], []
    for host, address in asked.targets:
        if (asked.agent, int(host[1:])) in dead:
            source = f"h{asked.agent}"
            link = Link(source=source, target=host, address=address, answer=Answer.SILENT)
            failed.append(link)
            figures.append((0.0, 0.0))
        else:
            figures.append((0.001, 5e8))
    worked = b"".join(LINK_FIGURES.pack(*f) for f in figures)
    crossing.apply_event(LinksProbed(agent=asked.agent, links=tuple(failed), worked=worked))


def rounds(*dead: tuple[int, int]) -> tuple[list[int], MultiHostState]:
    """How many trials each round has, where these links do not work."""
    crossing = MultiHostState("h0", joined=True)
    crossing.apply_event(RoleTaken(leads=True))
    for i in range(HOSTS):
        crossing.apply_event(
            AgentConnected(agent=i, host=f"h{i}", probe_address=f"10.0.0.{i}:40000", rank=i)
        )
    first = arrived_member(0, HOSTS, declared=sample_declaration(0, HOSTS))
    (roll,) = find_roll_calls(gathering_job(first, joined=True, leads=True, launched=1))
    trials = []
    while asked := list(crossing.link_rounds.next_probes(100.0, roll)):
        assert crossing.view_fields()["links"] == () and not crossing.are_links_probed(100.0)
        trials.append(sum(len(one.targets) for one in asked))
        for one in asked:
            answered(crossing, one, dead)
    assert crossing.are_links_probed(100.0)
    return trials, crossing


def test_where_all_is_well_there_is_one_round() -> None:
    trials, crossing = rounds()
    assert trials == [HOSTS * 7] and len(crossing.view_fields()["links"]) == HOSTS * 7


def test_a_link_that_works_the_other_way_is_told_as_that() -> None:
    trials, crossing = rounds((5, 6))
    assert trials[1:] == [1]
    (fault,) = find_link_faults(crossing.view_fields()["links"], NO_CONNECTION_ANSWERS)
    assert (fault.pair, fault.both_directions, fault.directions_tried) == (("h5", "h6"), False, 2)


def test_a_link_that_works_neither_way() -> None:
    trials, crossing = rounds((5, 6), (6, 5))
    assert trials[1:] == [1]
    (fault,) = find_link_faults(crossing.view_fields()["links"], NO_CONNECTION_ANSWERS)
    assert (fault.pair, fault.both_directions) == (("h5", "h6"), True)
