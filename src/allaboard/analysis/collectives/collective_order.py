"""The first call of a group at which its ranks did not call the same collective.

Every rank keeps a rolling digest of its calls in each group. Two digests that differ at one number prove that
the calls differed there or before; the traces of the members then show where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import has_failed
from allaboard.facts import GroupState, JobView, Member, Signature, Traced
from allaboard.facts.collective_calls import GroupKey, is_jitted
from allaboard.facts.memo import cached_per_view

MAX_TRACED_MEMBERS = 64
"""Members whose last calls are requested at once."""


class CallDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The first call of a group in which its ranks differ."""

    group: GroupKey
    """Name of the group, and the round of init that made it."""
    number: int
    """Number of the call in the group, from 1; 0 if it is not known any more."""
    calls: tuple[tuple[Member, Signature], ...]
    """Which member called what there, as far as known."""
    majority_call: Signature | None
    """What more than half of the group called, or None."""
    outliers: tuple[Member, ...]
    """Members that called something else; all members if there is no majority."""
    complete: bool
    """True if no rank that has yet to make this call can change the verdict."""

    @property
    def outlier_call(self) -> Signature:
        """Return what the outliers called; if all members are outliers, what the last of them called."""
        outlier_keys = {m.event_key for m in self.outliers}
        return next(s for m, s in reversed(self.calls) if m.event_key in outlier_keys)

    @property
    def expected_call(self) -> Signature:
        """Return what the other members called."""
        return self.majority_call or next(
            s for _, s in self.calls if s.required != self.outlier_call.required
        )


@cached_per_view
def diverged_groups(view: JobView) -> dict[GroupKey, int]:
    """Return the groups in which the digests of calls differ, each with a number at which they do."""
    return _find_diverged(view, lambda state: state.marks)


@cached_per_view
def groups_with_diverged_sites(view: JobView) -> dict[GroupKey, int]:
    """Return the groups in which only the places of the calls differ, not the calls themselves."""
    calls = diverged_groups(view)
    return {
        k: n
        for k, n in _find_diverged(view, lambda state: state.paths).items()
        if k not in calls and not is_jitted(k)
    }


def _find_diverged(
    view: JobView, marks: Callable[[GroupState], tuple[tuple[int, int], ...]]
) -> dict[GroupKey, int]:
    digests: dict[tuple[GroupKey, int], int] = {}
    diverged: dict[GroupKey, int] = {}
    compared: set[object] = set()
    for member in view.members:
        for state in member.groups:
            if state.size == 1:
                continue  # a group of one rank; several ranks may use the same name for such a group
            state_marks = marks(state)
            fingerprint = state.name, state.round, state.unordered, state_marks
            if fingerprint in compared:
                continue  # as nearly all ranks of a job that is well
            compared.add(fingerprint)
            for number, digest in state_marks:
                if state.unordered and number >= state.unordered:
                    continue
                if digests.setdefault((state.key, number), digest) != digest:
                    diverged[state.key] = min(number, diverged.get(state.key, number))
    return diverged


RankStates = list[tuple[Member, GroupState]]


def traces_of_diverged_sites(
    view: JobView,
) -> Iterator[tuple[GroupKey, list[tuple[Member, GroupState, Traced | None]]]]:
    """Yield the ranks of each group in which only places differ, with their last calls if they are known.

    Of a large group, yield only the ranks that prove something (`_select_telling_ranks`).
    """
    for key in groups_with_diverged_sites(view):
        members = [(m, s) for m in view.members if (s := _group_state(m, key)) is not None]
        if len(members) != members[0][1].size or any(s.unordered for _, s in members):
            continue
        if len(members) > MAX_TRACED_MEMBERS:
            members = _select_telling_ranks(members)
        if members:
            yield (
                key,
                [
                    (m, s, next((t for t in m.traces if (t.group, t.round) == key), None))
                    for m, s in members
                ],
            )


def _select_telling_ranks(members: RankStates) -> RankStates:
    """Return the few ranks whose call sites differ from those of most, and as many of the majority as fit.

    Ranks with the same digest at the same number have made all calls at the same places, so a part of the
    majority stands for all of it. Return [] unless only a few ranks differ.
    """
    paths = [dict(s.paths) for _, s in members]
    shared = set.intersection(*map(set, paths))
    if not shared:
        return []
    newest_shared = max(shared)
    (majority_digest, count), *_ = Counter(p[newest_shared] for p in paths).most_common(1)
    outlier_count = len(members) - count
    if not 0 < outlier_count < MAX_TRACED_MEMBERS // 2:
        return []
    outliers = [
        entry
        for entry, p in zip(members, paths, strict=True)
        if p[newest_shared] != majority_digest
    ]
    return (
        outliers
        + [
            entry
            for entry, p in zip(members, paths, strict=True)
            if p[newest_shared] == majority_digest
        ][: MAX_TRACED_MEMBERS - outlier_count]
    )


def members_to_trace(view: JobView) -> list[tuple[GroupKey, tuple[int, ...]]]:
    """Return, for each diverged group, the members to trace in order to find the first difference."""
    requests = []
    groups = _groups_far_apart(view) | _groups_of_failed(view) | diverged_groups(view)
    for key, number in groups.items():
        known_difference = find_call_difference(view, key)
        needed_number = (
            known_difference.number
            if known_difference is not None and known_difference.number
            else number
        )
        pids = []
        for member in view.members:
            state = _group_state(member, key)
            if state is None or state.number < needed_number:
                continue
            trace = next((t for t in member.traces if (t.group, t.round) == key), None)
            if trace is None or trace.last_number < needed_number:
                pids.append(member.event_key)
        if pids:
            requests.append((key, tuple(pids[:MAX_TRACED_MEMBERS])))
    return requests


def _groups_far_apart(view: JobView) -> dict[GroupKey, int]:
    """Return the groups of a stalled job whose members are too far apart to have a digest in common, with
    the number of the last call that all have made.

    A rank that starts several calls without waiting (``async_op``) is ahead of the others by as many; only
    its trace shows whether the first of them is the one that the others are in.
    """
    if not view.stalled:
        return {}
    states: dict[GroupKey, list[GroupState]] = {}
    for member in view.alive:
        for state in member.groups:
            if state.size > 1 and state.marks:
                states.setdefault(state.key, []).append(state)
    apart = {}
    for key, group_states in states.items():
        least = min(group_states, key=lambda s: s.number)
        if any(s.number > least.number and not _has_mark(s, least.number) for s in group_states):
            apart[key] = least.number
    return apart


def _has_mark(state: GroupState, number: int) -> bool:
    return any(n == number for n, _ in state.marks)


def _groups_of_failed(view: JobView) -> dict[GroupKey, int]:
    """Return the groups of failed members, with the number of their last call there.

    A peer that catches the exception that such a failure causes may have gone on, and then does not show its
    call of that number any more.
    """
    caught = {s.key for m in view.members for s in m.groups if s.unordered}
    return {
        state.key: state.number
        for member in view.members
        if caught and has_failed(member)
        for state in member.groups
        if state.number and state.key in caught
    }


@cached_per_view
def find_call_differences(view: JobView) -> tuple[CallDifference, ...]:
    """Return the first difference of every group whose ranks are known to differ."""
    keys = dict.fromkeys((t.group, t.round) for m in view.members for t in m.traces)
    return tuple(d for key in keys if (d := find_call_difference(view, key)) is not None)


def find_call_difference(view: JobView, key: GroupKey) -> CallDifference | None:
    """Return the first difference in one group, or None if none is known."""
    traced = []
    for member in view.members:
        state = _group_state(member, key)
        # A call after which the order proves nothing ends the comparable part of a trace.
        trace = next((t for t in member.traces if (t.group, t.round) == key), None)
        if state is not None and state.size > 1 and trace is not None:
            end = min(
                trace.last_number, state.unordered - 1 if state.unordered else trace.last_number
            )
            traced.append((member, state, trace, end))
    if len(traced) < 2:
        return None
    number = _first_diverged_number([(t, end) for *_, t, end in traced])
    if number is None:
        return None
    calls = tuple(
        (m, recorded_call[1])
        for m, _, t, e in traced
        if number <= e
        and (recorded_call := t.call_at(number)) is not None
        and recorded_call[1] is not None
    )
    if len({s.required for _, s in calls}) < 2:
        return None  # the first difference is older than what is remembered
    return _judge_difference(view, key, number, calls, traced[0][1].size)


def _first_diverged_number(traced: list[tuple[Traced, int]]) -> int | None:
    """Return the first number at which digests differ, of each trace up to where its order is proven."""
    # A digest covers all calls up to its number, so ranks with the same last digest need no comparison. That
    # leaves few kinds of traces even among thousands of ranks.
    kinds = {
        (t.first_number, t.last_number, end, t.calls[-1][0]): (t, end)
        for t, end in traced
        if t.calls
    }.values()
    if len(kinds) < 2:
        return None
    for number in range(min(t.first_number for t, _ in kinds), max(end for _, end in kinds) + 1):
        digests = {
            d[0] for t, end in kinds if number <= end and (d := t.call_at(number)) is not None
        }
        if len(digests) > 1:
            return number
    return None


def _judge_difference(
    view: JobView,
    key: GroupKey,
    number: int,
    calls: tuple[tuple[Member, Signature], ...],
    size: int,
) -> CallDifference:
    # Only what the operation requires to be equal counts: gathers may have other sizes by right.
    counts = Counter(s.required for _, s in calls)
    majority_hash, majority_size = counts.most_common(1)[0]
    has_majority = majority_size * 2 > size
    majority_call = (
        next(s for _, s in calls if s.required == majority_hash) if has_majority else None
    )
    outliers = tuple(m for m, s in calls if majority_call is None or s.required != majority_hash)
    return CallDifference(
        group=key,
        number=number,
        calls=calls,
        majority_call=majority_call,
        outliers=outliers,
        complete=view.stalled
        or view.ended
        or (not is_jitted(key) and (len(calls) >= size or has_majority)),
    )


def _group_state(member: Member, key: GroupKey) -> GroupState | None:
    return next((s for s in member.groups if s.key == key), None)
