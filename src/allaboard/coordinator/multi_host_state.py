"""What is known of other hosts: who leads, which agents are connected, which strangers called. Pure but for
its memory."""

from __future__ import annotations

from typing import Any

import msgspec

from allaboard.coordinator.link_probe_rounds import LinkProbeRounds
from allaboard.facts import Answer, Call, Holder, Knock, LeaderLoss
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    Event,
    LeaderLost,
    LinksProbed,
    MeetingImpossible,
    PortChecked,
    QuorumChanged,
    RendezvousProbed,
    RoleTaken,
    StrangerConnected,
)

MAX_STRANGERS = 64
"""Different strangers that are remembered."""
MAX_ISOLATION_S = 900.0
"""Time for which an agent that does not reach most of the others ends nothing: as long as connections between
workers outlast a pause of the network. After it the bounds that the user set count again."""


class MultiHostState:
    """The state of the meeting of several hosts."""

    declared_world_size = 0
    """The world size that our own member declared; 0 if it has not."""

    def __init__(self, host: str, joined: bool) -> None:
        self.host = host
        self.joined = joined
        self.leads = False
        """True if the agents meet here."""
        self.meeting_place = ""
        self.rendezvous_call: Call | None = None
        self.leader_loss: LeaderLoss | None = None
        """The loss of the agent that led; None if there was none."""
        self.isolation = ""
        """How few agents can be reached from here, for people; "" if it is most of them."""
        self._isolated_since = 0.0
        self.port_holder: Holder | None = None
        self.agents: dict[int, AgentConnected] = {}
        self.link_rounds = LinkProbeRounds(self.agents)
        self.plain_client: Knock | None = None
        """A client of the framework that came from a host without allaboard."""
        self._meeting_hindrance = ""
        """Why this agent cannot meet the others, which the framework may; "" if it can."""
        self._strangers: dict[tuple[str, str], Knock] = {}
        self._clocks: dict[str, float] | None = None
        """Host to how far its clock is ahead of ours (s); None until it is asked for again."""

    def apply_event(self, event: Event) -> None:
        """Take in an event that is about other hosts; others are ignored."""
        match event:
            case RoleTaken():
                self.leads, self.meeting_place = event.leads, event.meeting_place
                if not event.leads:
                    self._forget_agents()
                elif event.is_roll_call_over:
                    self.link_rounds.skip_probes()
            case AgentConnected():
                self.agents[event.agent] = event
                self._clocks = None
                loss = self.leader_loss
                if loss is not None and (loss.host, loss.rank) == (event.host, event.rank):
                    self.leader_loss = None  # it follows now
            case QuorumChanged():
                self.isolation, self._isolated_since = event.isolation, event.changed_at
            case AgentDisconnected():
                self._clocks = None
                self.agents.pop(event.agent, None)
                self.link_rounds.forget_agent(event.agent)
            case RendezvousProbed():
                self.rendezvous_call = event.call
            case LeaderLost():
                self.leader_loss = event.loss
            case LinksProbed():
                self.link_rounds.add_answer(event)
            case PortChecked():
                self.port_holder = event.holder
            case MeetingImpossible():
                self._meeting_hindrance = event.reason
            case StrangerConnected():
                self._stranger_connected(event)

    def _forget_agents(self) -> None:
        self._clocks = None
        self.agents.clear()
        self.link_rounds.forget_agents()

    def _stranger_connected(self, event: StrangerConnected) -> None:
        knock = event.knock
        if event.is_plain_client:
            self.plain_client = self.plain_client or knock
            return
        key = knock.peer, knock.kind
        earlier = self._strangers.get(key)
        if earlier is not None:
            # A caller that hangs up where TLS begins may say over another stream who it is.
            best = (
                knock
                if knock.is_unequipped_worker and not earlier.is_unequipped_worker
                else earlier
            )
            knock = msgspec.structs.replace(
                best, times=earlier.times + 1, knocked_at=earlier.knocked_at
            )
        if earlier is not None or len(self._strangers) < MAX_STRANGERS:
            self._strangers[key] = knock

    def view_fields(self) -> dict[str, Any]:
        """Return the fields of a JobView that are about other hosts."""
        if self._clocks is None:
            self._clocks = {a.host: a.clock_ahead_s for a in self.agents.values() if a.agent}
        return {
            "joined": self.joined,
            "leads": self.leads,
            "place": self.meeting_place,
            "call": self.rendezvous_call,
            "leader_loss": self.leader_loss,
            "links": self.link_rounds.links,
            "usual": self.link_rounds.usual_link,
            "knocks": tuple(self._strangers.values()),
            "holder": self.port_holder,
            "clocks": self._clocks,
        }

    @property
    def early_open_reason(self) -> str:
        """Why the gate opens although the roll call is not complete; "" if it does not.

        A framework's own client or server means a host without allaboard: it must not be kept waiting.
        """
        if self._meeting_hindrance:
            return f"the agents cannot meet: {self._meeting_hindrance}; the framework meets without them"
        if self.plain_client is not None:
            return f"{self.plain_client.peer} runs without allaboard ({self.plain_client.said})"
        call = self.rendezvous_call
        if call is None or self.leads or call.answer not in (Answer.STORE, Answer.GRPC):
            return ""
        if self.has_stale_store:
            return ""
        return f"the framework's own rendezvous is open at {call.address}"

    def must_only_observe(self, now: float) -> bool:
        """Return True if another part of the job, which cannot be reached from here, may go on."""
        return bool(self.isolation) and now - self._isolated_since < MAX_ISOLATION_S

    @property
    def unseen_members_reason(self) -> str:
        """Why a later roll call cannot become complete here; "" if it can."""
        loss = self.leader_loss
        if loss is None or not loss.is_confirmed:
            return ""
        return f"the agent of {loss.host} has gone: its workers cannot be seen"

    @property
    def has_stale_store(self) -> bool:
        """True if the store at the rendezvous address belongs to a job that is complete without us."""
        call = self.rendezvous_call
        return (
            call is not None
            and call.answer is Answer.STORE
            and 0 < self.declared_world_size <= call.joined
        )

    def are_links_probed(self, now: float) -> bool:
        """Return True if all links have been probed, or have had their time."""
        return not self.joined or not self.leads or self.link_rounds.are_over(now)
