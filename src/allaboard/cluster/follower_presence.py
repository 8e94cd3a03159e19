"""Which followers are connected to the leader, which of them are silent, and where each can be reached."""

from __future__ import annotations

from collections.abc import Callable

from allaboard.cluster.connections.silence_detector import SilenceDetector
from allaboard.cluster.succession_choice import AgentAnswer, describe_isolation, has_quorum
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.agent_contact import reachable_address
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S, HOST_LOST_AFTER_S
from allaboard.cluster.transport.wire import AgentContact
from allaboard.protocol.commands import Command, ShowNote
from allaboard.protocol.events import AgentConnected, AgentDisconnected, Event


class FollowerPresence:
    """The followers of one leader. ``own_rank`` returns the rank of the leader's own agent."""

    def __init__(self, own_rank: Callable[[], int]) -> None:
        self._own_rank = own_rank
        self.members: dict[int, MemberConnection] = {}
        """The agents that are connected, by number."""
        self._names: dict[int, tuple[int, str]] = {}
        """Rank and host of each agent that was ever admitted: kept when it goes, since notes and `lost_hosts`
        still need them."""
        self._contacts: dict[int, AgentContact] = {}
        """Where each agent that was ever admitted can be reached."""
        self.silence = SilenceDetector()
        self._left_silently: set[int] = set()
        """Agents whose streams ended while they were silent: they may live on the other side of a divided
        network."""
        self.isolation = ""
        """How few agents can be reached from here, for people; "" if it is most of them."""

    def add_member(self, member: MemberConnection) -> None:
        """Note an agent that was admitted, for the first time or again."""
        self.members[member.number] = member
        self._names[member.number] = member.hello.rank, member.hello.host
        self._contacts[member.number] = _contact_of(member)
        if member.number in self._left_silently:
            self._left_silently.discard(member.number)
            self.check_quorum()

    def remove_member(self, member: MemberConnection) -> bool:
        """Note that a stream has ended. Return False if its agent has already reconnected over another."""
        if self.members.get(member.number) is not member:
            return False
        self.members.pop(member.number, None)
        # The kernel ends a silent stream in the end; that does not prove that the agent is dead.
        if member.number in self.silence.silent_since:
            self._left_silently.add(member.number)
        return True

    @property
    def met_count(self) -> int:
        """Number of other agents that have ever connected."""
        return len(self._names)

    def host_of(self, number: int) -> str:
        """Return the host of an agent; "agent 3" if it was never admitted."""
        return self._names.get(number, (-1, f"agent {number}"))[1]

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts whose agents were connected and are not any more, unless another agent came in their
        place."""
        # A silent host counts as lost, too, although its stream is still open.
        responsive = self.members.keys() - self.silence.silent_since.keys()
        present = {self._names[n] for n in responsive}
        lost = (name for n, name in self._names.items() if n not in responsive)
        return tuple(dict.fromkeys(host for rank, host in lost if (rank, host) not in present))

    @property
    def silent_contacts(self) -> list[AgentContact]:
        """Where the agents may be reached that do not answer."""
        silent = self.silence.silent_since.keys() | self._left_silently
        return [self._contacts[n] for n in sorted(silent)]

    def roster_agents(self, own_contact: AgentContact) -> tuple[AgentContact, ...]:
        """Return the leader's own agent, and those that lead next if it is lost, in this order."""
        order = sorted(self.members.values(), key=lambda m: (m.hello.rank, m.number))
        return (own_contact, *(self._contacts[m.number] for m in order[: wire.MAX_ROSTER - 1]))

    def find_silences(self, now: float) -> tuple[list[Event], list[Command]]:
        """Return what to report of followers that have fallen silent during the training although their
        stream is open, and of those that answer again."""
        lost, recovered = self._silence_changes(now, HOST_AWAY_AFTER_S)
        events: list[Event] = [
            AgentDisconnected(agent=n, disconnected_at=self.silence.silent_since[n]) for n in lost
        ]
        events += [connected_event(self.members[n]) for n in recovered]
        if lost or recovered:
            self.check_quorum()
        notes = [
            f"nothing has come from {self.host_of(n)} for {HOST_AWAY_AFTER_S:.0f} s" for n in lost
        ]
        notes += [f"{self.host_of(n)} answers again" for n in recovered]
        return events, [ShowNote(text=text) for text in notes]

    def cut_silent_streams(self, now: float) -> None:
        """Cut streams that are silent during the roll call, so that their agents can reconnect.

        The kernel would end such a stream, too, but it begins to count anew whenever something was sent to
        that host meanwhile.
        """
        lost, _ = self._silence_changes(now, HOST_LOST_AFTER_S)
        for number in lost:
            self.members[number].stream.abort()

    def _silence_changes(self, now: float, limit_s: float) -> tuple[list[int], list[int]]:
        silences = {n: m.stream.seconds_silent for n, m in self.members.items()}
        return self.silence.find_changes(now, silences, limit_s)

    def check_quorum(self) -> None:
        """Find out if this agent still reaches most of the others that may live."""
        numbers = sorted(self.members.keys() | self._left_silently)
        silent = self.silence.silent_since.keys() | self._left_silently
        answers = [AgentAnswer.SILENT if n in silent else AgentAnswer.FOLLOWS for n in numbers]
        ranks = [self._own_rank(), *(self._names[n][0] for n in numbers)]
        is_most = has_quorum(0, [AgentAnswer.LEADS, *answers], ranks)
        reached_count = len(ranks) - len(silent)
        self.isolation = "" if is_most else describe_isolation(reached_count, len(ranks))


def _contact_of(member: MemberConnection) -> AgentContact:
    hello = member.hello
    return AgentContact(
        host=hello.host,
        rank=hello.rank,
        session=hello.session,
        address=reachable_address(hello.data, member.peer_address),
    )


def connected_event(member: MemberConnection) -> AgentConnected:
    """Return the event that this agent is connected."""
    hello = member.hello
    return AgentConnected(
        agent=member.number,
        host=hello.host,
        probe_address=hello.data,
        rank=hello.rank,
        clock_ahead_s=member.wall_offset,
    )
