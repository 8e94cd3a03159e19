"""Whom a roll call that is not complete waits for, and since when, in a line for people. Pure."""

from __future__ import annotations

from allaboard.analysis.roll_call.roll_call import RollCall, roll_calls
from allaboard.analysis.roll_call.task_names import describe_tasks
from allaboard.facts import Answer, Call, JobView, Knock, Member, Phase


def waiting_message(view: JobView) -> str:
    """What this host's members wait for; "" where nobody of them stands at the door."""
    rolls = [r for r in roll_calls(view) if not r.is_complete]
    if not rolls:
        return ""
    call = view.call
    if view.joined and not view.leads and call is not None and rolls[0].held:
        seconds = view.now - rolls[0].first_arrival
        meeting_place = (
            f"{call.address}, where all meet" if call.address else "the way to the meeting"
        )
        return f"waiting {seconds:.0f} s for {meeting_place}: {_describe_answer(call)}"
    return describe_awaited(view, rolls[0])


def _describe_answer(call: Call) -> str:
    """What was met there, and what it leaves open."""
    if call.answer in (Answer.OTHER, Answer.FAILED):
        is_answer_known = call.kind or call.answer is Answer.FAILED
        return call.said if is_answer_known else "another program answers there"
    if call.answer is not Answer.REFUSED:
        return ANSWER_TEXT[call.answer]
    if call.shook:
        return "it was there before, and now refuses the port: it has gone, or is coming back"
    return "that host is up and refuses the port: rank 0 has not come to it yet, or is elsewhere"


def describe_awaited(view: JobView, roll: RollCall) -> str:
    """Who is here, and who is not: in which line, or never heard of."""
    arrived = roll.size - len(roll.missing)
    seconds = view.now - roll.first_arrival if roll.held else 0.0
    text = f"{arrived} of {roll.size} aboard, waiting {seconds:.0f} s for "
    parts = [describe_progress(m) for m in roll.late[:MAX_NAMED_LATE]]
    unheard_ranks = roll.unheard_ranks
    if unheard_ranks:
        parts.append(f"{describe_tasks(roll.present[0].declared, unheard_ranks)}: never heard of")
    elif not parts:
        parts.append("those who came to agree on who is who")
    return text + "; ".join(
        [*parts, *(describe_turned_away(k) for k in relevant_knocks(view, roll))]
    )


def relevant_knocks(view: JobView, roll: RollCall) -> list[Knock]:
    """Who came, was not let in, and may be of those that are missing: not who says to be one that is here. A
    worker of another job must say to be one that is not: most that come are none of ours."""
    return [
        k
        for k in view.knocks
        if k.named and (k.rank in roll.missing or (k.rank < 0 and k.kind != OTHER_JOB_KIND))
    ][:MAX_NAMED_LATE]


def describe_turned_away(knock: Knock) -> str:
    """Who was not let in, and why."""
    return f"{knock.who} came and was turned away, since it {knock.said}"


ANSWER_TEXT = {
    Answer.ABOARD: "this host is taken in",
    Answer.SILENT: "nothing answers there",
    Answer.UNREACHABLE: "there is no route to that host",
    Answer.NO_NAME: "its name does not resolve here",
    Answer.CLOSED: "what listens there hangs up at once",
    Answer.MUTE: "what listens there says nothing",
    Answer.STORE: "a PyTorch store has the port",
    Answer.GRPC: "a gRPC server (TensorFlow or JAX) has the port",
    Answer.HTTP: "a web server has the port",
    Answer.CUT: "large messages do not pass",
    Answer.UNPOSTED: "it is not posted yet",
}
"""How the last attempt there ended, in words."""
OTHER_JOB_KIND = "other-job"
MAX_NAMED_LATE = 2
"""Late members whose place is told."""


def describe_progress(member: Member) -> str:
    """Who it is, and what it does meanwhile."""
    name = member.who.name
    if member.phase is Phase.IMPORTING:
        return f"{name}: importing {member.detail}"
    user_frame = member.stack.user if member.stack is not None else None
    if user_frame is not None:
        return f"{name}: at {user_frame}"
    return f"{name}: {member.phase.name.lower()}"
