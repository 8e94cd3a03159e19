"""The line that tells people for whom an incomplete roll call waits, and for how long."""

from __future__ import annotations

from allaboard.analysis.roll_call.first_member import first_member_name
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.roll_call.task_names import describe_tasks
from allaboard.facts import Answer, Call, Declared, JobView, Knock, Member, Phase


def waiting_message(view: JobView) -> str:
    """Return what this host's members wait for; "" if every roll call is complete."""
    # Members that have left init need nobody else: a launcher that is not ours started what is missing.
    rolls = [
        r for r in find_roll_calls(view) if not r.is_complete and (r.held_members or r.in_init)
    ]
    if not rolls:
        return ""
    call = view.call
    # On a host that has not reached the leader yet, only the connection attempt is known.
    if view.joined and not view.leads and call is not None and rolls[0].held_members:
        seconds = view.now - rolls[0].first_arrival
        meeting_place = (
            f"{call.address}, where the workers meet"
            if call.address
            else "the address of the first host"
        )
        declared = rolls[0].held_members[0].declared
        if declared is not None and declared.rank > 0 and _is_first_member_absent(call, declared):
            name = first_member_name(declared, call.address)
            return (
                f"waiting {seconds:.0f} s for {name}: not started yet ({ABSENT_TEXT[call.answer]})"
            )
        return f"waiting {seconds:.0f} s for {meeting_place}: {_describe_answer(call)}"
    return describe_awaited(view, rolls[0])


def _is_first_member_absent(call: Call, declared: Declared) -> bool:
    """Return True if nothing was ever heard from the first member's own address."""
    is_own = (
        call.address in declared.cluster.values()
        if declared.cluster
        else declared.place.endswith(f"//{call.address}")
    )
    return call.answer in ABSENT_TEXT and not call.shook and is_own


def _describe_answer(call: Call) -> str:
    """Return what answered at the rendezvous address, and what that may mean."""
    if call.answer in (Answer.OTHER, Answer.FAILED):
        is_answer_known = call.kind or call.answer is Answer.FAILED
        return call.said if is_answer_known else "another program answers there"
    if call.answer is not Answer.REFUSED:
        return ANSWER_TEXT[call.answer]
    if call.shook:
        return "it answered before and now refuses the connection: it has exited, or is restarting"
    return (
        "that host is up but refuses the connection: rank 0 has not started yet, or runs elsewhere"
    )


def describe_awaited(view: JobView, roll: RollCall) -> str:
    """Return how many members are ready, and how far each missing one has come."""
    arrived = roll.size - len(roll.missing)
    seconds = view.now - roll.first_arrival if roll.held_members else 0.0
    text = f"{arrived} of {roll.size} ready, waiting {seconds:.0f} s for "
    parts = [describe_progress(m) for m in roll.late[:MAX_NAMED_LATE]]
    unheard_ranks = roll.unheard_ranks
    # Ranks without any process come last: nothing is known of them but their number.
    declared = roll.present[0].declared if roll.present else None
    if unheard_ranks and declared is not None and _stands_in(view, declared, unheard_ranks):
        assert view.call is not None
        name = first_member_name(declared, view.call.address)
        parts.append(f"{name}: not started yet ({ABSENT_TEXT[view.call.answer]})")
        unheard_ranks = unheard_ranks[1:]
    if unheard_ranks:
        parts.append(f"{describe_tasks(declared, unheard_ranks)}: not joined yet")
    elif not parts:
        parts.append("the members that are here to agree on their ranks")
    return text + "; ".join(
        [*parts, *(describe_turned_away(k) for k in relevant_knocks(view, roll))]
    )


def _stands_in(view: JobView, declared: Declared, unheard_ranks: tuple[int, ...]) -> bool:
    """Return True if another task leads because the first one is not there."""
    call = view.call
    is_absent = view.leads and call is not None and _is_first_member_absent(call, declared)
    return is_absent and unheard_ranks[0] == 0


def relevant_knocks(view: JobView, roll: RollCall) -> list[Knock]:
    """Return the rejected connections that may come from missing members.

    One that claims a rank that is present does not count. A worker of another job must claim a missing rank:
    most such connections are not from this job.
    """
    return [
        k
        for k in view.knocks
        if k.is_unequipped_worker
        and (k.rank in roll.missing or (k.rank < 0 and k.kind != OTHER_JOB_KIND))
    ][:MAX_NAMED_LATE]


def describe_turned_away(knock: Knock) -> str:
    """Return which host or worker was rejected, and why."""
    return f"{knock.claimed_member} was rejected: it {knock.said}"


ABSENT_TEXT = {
    Answer.REFUSED: "its host is up and refuses the connection: nothing listens there",
    Answer.SILENT: "no answer: its host is down, or a firewall drops the packets",
    Answer.NO_NAME: "its host's name is not known here",
    Answer.UNREACHABLE: "there is no route to its host",
}
"""What each answer says of a first member from whose address nothing was ever heard."""
ANSWER_TEXT = {
    Answer.ABOARD: "this host has been taken in",
    Answer.SILENT: "nothing answers there",
    Answer.UNREACHABLE: "there is no route to that host",
    Answer.NO_NAME: "its name does not resolve here",
    Answer.CLOSED: "what listens there closes the connection at once",
    Answer.MUTE: "what listens there does not answer",
    Answer.STORE: "a PyTorch store has the port",
    Answer.GRPC: "a gRPC server (TensorFlow or JAX) has the port",
    Answer.HTTP: "a web server has the port",
    Answer.CUT: "large packets do not get through",
    Answer.UNPOSTED: "it has not been published yet",
}
"""Description of each answer to the last attempt to reach the rendezvous address."""
OTHER_JOB_KIND = "other-job"
"""Kind of a rejected connection from a worker of another job."""
MAX_NAMED_LATE = 2
"""Late members whose position is shown."""


def describe_progress(member: Member) -> str:
    """Return the member's name and what it does meanwhile."""
    name = member.who.name
    if member.phase is Phase.IMPORTING:
        return f"{name}: importing {member.detail}"
    user_frame = member.stack.user if member.stack is not None else None
    if user_frame is not None:
        return f"{name}: at {user_frame}"
    return f"{name}: {member.phase.name.lower()}"
