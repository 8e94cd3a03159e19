"""What follows a round: another round, or the end. A function of the rounds so far and of the policy."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Outcome, RoundEnd
from allaboard.policy.restart.restart_policy import (
    RESTART_NOT_ALLOWED,
    NoRestart,
    Restart,
    RestartPolicy,
    restart_delay,
)

MAX_FUTILE_ROUNDS = 3
"""Rounds in a row without progress after which a further one is not worth its time."""


def decide_after_round(
    rounds: Sequence[RoundEnd], policy: RestartPolicy, alone: int = 0, hindrance: str = ""
) -> Restart | NoRestart:
    """Return whether to start another round after the last of ``rounds``.

    ``alone`` tasks were restarted by themselves before; ``hindrance`` says why another host cannot take part
    in a further round, "" if it can.
    """
    last_round = rounds[-1]
    reason = (
        _reason_to_stop(last_round, policy)
        or repeated_exception(rounds)
        or _lack_of_progress(rounds)
        or hindrance
    )
    if reason:
        return NoRestart(reason)
    used = len(rounds) - 1 + alone
    if used >= policy.max_restarts:
        times = f"{used} restart{'s' if used != 1 else ''}"
        return NoRestart(f"{times} used up (--max-restarts {policy.max_restarts})")
    delay = restart_delay(policy.backoff, count_futile_rounds(rounds))
    cause = str(last_round.cause) if last_round.cause is not None else last_round.reason
    return Restart(f"{cause}; restart {used + 1} of {policy.max_restarts}", delay)


def _reason_to_stop(last_round: RoundEnd, policy: RestartPolicy) -> str:
    """Return why nothing would be restarted, however often it is allowed; "" if nothing forbids it."""
    if last_round.outcome is Outcome.COMPLETED:
        return last_round.reason
    if last_round.outcome is Outcome.INTERRUPTED:
        return f"{last_round.reason}; a job that the user ends is not restarted"
    if not policy.allowed:
        return RESTART_NOT_ALLOWED
    if last_round.final:
        return last_round.reason
    if last_round.outcome is Outcome.USAGE:
        return f"{last_round.reason}; a restart would fail in the same way"
    # With a cause, a member had died before the roll call, and may come in the next round.
    if last_round.outcome is Outcome.ROLL_CALL_FAILED and last_round.cause is None:
        return "the roll call failed, and no process died: another round would fail in the same way"
    return ""


def repeated_exception(rounds: Sequence[RoundEnd]) -> str:
    """Return that the user's exception came at the same line after the same steps before; "" if it did not.

    Then it is in the program or its data, and would come in every round.
    """
    last_round = rounds[-1]
    cause = last_round.cause
    if cause is None or not cause.place:
        return ""
    for earlier in rounds[:-1]:
        earlier_cause = earlier.cause
        if earlier_cause is None:
            continue
        if (earlier_cause.error, earlier_cause.place) != (cause.error, cause.place):
            continue
        if _failed_at_same_step(earlier, last_round):
            progress = (
                f"step {last_round.reached}"
                if last_round.reached is not None
                else f"{cause.steps} steps"
            )
            return (
                f"{cause.who} raised {cause.error} at {cause.place} after {progress}, as in round "
                f"{earlier.number}: it would fail in every round"
            )
    return ""


def _failed_at_same_step(earlier: RoundEnd, last_round: RoundEnd) -> bool:
    if earlier.reached is not None and last_round.reached is not None:
        return earlier.reached == last_round.reached
    assert earlier.cause is not None and last_round.cause is not None
    return earlier.cause.steps == last_round.cause.steps


def _lack_of_progress(rounds: Sequence[RoundEnd]) -> str:
    futile = count_futile_rounds(rounds)
    if futile < MAX_FUTILE_ROUNDS:
        return ""
    reached = furthest_step(rounds)
    limit = f"beyond step {reached}" if reached else "to a step"
    return f"a loop without progress: none of the last {futile} rounds got {limit}"


def count_futile_rounds(rounds: Sequence[RoundEnd]) -> int:
    """Return how many rounds in a row, up to the last, got no further than those before them.

    If the framework does not number its steps, a round that made any step is progress.
    """
    count = 0
    for index in range(len(rounds) - 1, -1, -1):
        if _made_progress(rounds[index], furthest_step(rounds[:index])):
            break
        count += 1
    return count


def _made_progress(round_end: RoundEnd, furthest: int | None) -> bool:
    if round_end.reached is None or furthest is None:
        return round_end.steps > 0
    return round_end.reached > furthest


def furthest_step(rounds: Sequence[RoundEnd]) -> int | None:
    """Return the last step that any of the rounds reached; None if it is not known."""
    return max((r.reached for r in rounds if r.reached is not None), default=None)


def count_repeated_steps(rounds: Sequence[RoundEnd]) -> int | None:
    """Return how many steps of earlier rounds the last round had to repeat, as they were made after the
    checkpoint from which it went on.

    If the framework does not number its steps, these are the steps that the round before had begun after it
    wrote its last checkpoint; None if no checkpoint was seen to be read.
    """
    if rounds[-1].first is None:
        return _steps_after_last_checkpoint(rounds)
    last_round, furthest = rounds[-1], furthest_step(rounds[:-1])
    if furthest is None or last_round.first is None or not last_round.steps:
        return None
    return max(0, furthest - (last_round.first - 1))


def _steps_after_last_checkpoint(rounds: Sequence[RoundEnd]) -> int | None:
    last_round = rounds[-1]
    if len(rounds) < 2 or last_round.restored is None or last_round.restored < 0:
        return None
    return rounds[-2].steps - max(0, rounds[-2].saved or 0)
