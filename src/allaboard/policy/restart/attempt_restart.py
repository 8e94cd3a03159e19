"""After a round: another one, or the end. A function of the rounds so far and of the policy."""

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
"""Rounds in a row without progress after which no further one is worth its time."""


def decide_after_round(
    rounds: Sequence[RoundEnd], policy: RestartPolicy, alone: int = 0, hindrance: str = ""
) -> Restart | NoRestart:
    """What is done now that the last of ``rounds`` has ended; ``alone`` tasks were started again by
    themselves before; ``hindrance``: why another host cannot take part in a further one."""
    last = rounds[-1]
    stop = _over(last, policy) or _same_again(rounds) or _no_progress(rounds) or hindrance
    if stop:
        return NoRestart(stop)
    used = len(rounds) - 1 + alone
    if used >= policy.max_restarts:
        times = f"{used} restart{'s' if used != 1 else ''}"
        return NoRestart(f"{times} used up (--max-restarts {policy.max_restarts})")
    futile = count_futile_rounds(rounds)
    delay = restart_delay(policy.backoff, futile)
    why = str(last.cause) if last.cause is not None else last.reason
    return Restart(f"{why}; restart {used + 1} of {policy.max_restarts}", delay)


def _over(last: RoundEnd, policy: RestartPolicy) -> str:
    """Why nothing would be started again, however often it is allowed."""
    if last.outcome is Outcome.COMPLETED:
        return last.reason
    if last.outcome is Outcome.INTERRUPTED:
        return f"{last.reason}; what the user ends stays ended"
    if not policy.allowed:
        return RESTART_NOT_ALLOWED
    if last.final:
        return last.reason
    if last.outcome is Outcome.USAGE:
        return f"{last.reason}; another start would meet the same"
    if last.outcome is Outcome.ROLL_CALL_FAILED and last.cause is None:
        return "the roll call failed, and nobody died: another round would meet the same"
    return ""


def _same_again(rounds: Sequence[RoundEnd]) -> str:
    """The user's own exception at the same line after the same steps: it is in the program or its
    data, and comes at every round."""
    last = rounds[-1]
    cause = last.cause
    if cause is None or not cause.place:
        return ""
    for earlier in rounds[:-1]:
        other = earlier.cause
        if other is None or (other.error, other.place) != (cause.error, cause.place):
            continue
        if _same_step(earlier, last):
            after = f"step {last.reached}" if last.reached is not None else f"{cause.steps} steps"
            return (
                f"{cause.who} raised {cause.error} at {cause.place} after {after}, as in round "
                f"{earlier.number}: it would come at every round"
            )
    return ""


def _same_step(one: RoundEnd, other: RoundEnd) -> bool:
    if one.reached is not None and other.reached is not None:
        return one.reached == other.reached
    assert one.cause is not None and other.cause is not None
    return one.cause.steps == other.cause.steps


def _no_progress(rounds: Sequence[RoundEnd]) -> str:
    futile = count_futile_rounds(rounds)
    if futile < MAX_FUTILE_ROUNDS:
        return ""
    reached = furthest_step(rounds)
    where = f"beyond step {reached}" if reached else "to a step"
    return f"a loop without progress: none of the last {futile} rounds got {where}"


def count_futile_rounds(rounds: Sequence[RoundEnd]) -> int:
    """How many rounds in a row, up to the last, got no further than those before them. Where the
    framework does not number its steps, a round that did any is progress."""
    count = 0
    for at in range(len(rounds) - 1, -1, -1):
        if _got_on(rounds[at], furthest_step(rounds[:at])):
            break
        count += 1
    return count


def _got_on(now: RoundEnd, before: int | None) -> bool:
    if now.reached is None or before is None:
        return now.steps > 0
    return now.reached > before


def furthest_step(rounds: Sequence[RoundEnd]) -> int | None:
    """The last step that any of them reached; None where that is not known."""
    return max((r.reached for r in rounds if r.reached is not None), default=None)


def count_repeated_steps(rounds: Sequence[RoundEnd]) -> int | None:
    """How many of the steps of the rounds before the last of them had to do again: they were made
    after the checkpoint from which it went on. Where the framework does not number its steps, those that the
    round before had begun after it wrote its last checkpoint; None where it is not seen that one was read."""
    if rounds[-1].first is None:
        return _after_the_last_checkpoint(rounds)
    last, before = rounds[-1], furthest_step(rounds[:-1])
    if before is None or last.first is None or not last.steps:
        return None
    return max(0, before - (last.first - 1))


def _after_the_last_checkpoint(rounds: Sequence[RoundEnd]) -> int | None:
    last = rounds[-1]
    if len(rounds) < 2 or last.restored is None or last.restored < 0:
        return None
    return rounds[-2].steps - max(0, rounds[-2].saved or 0)
