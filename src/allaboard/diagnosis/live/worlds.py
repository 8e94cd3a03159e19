"""The worlds of ranks that run side by side: a trainer's and a rollout's of one job, say. Pure.

Ranks of two worlds have the same numbers, and meet at different places. One world whose ranks were told
different places, which is a mistake, is something else: there no rank is there twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from allaboard.configuration import resolve
from allaboard.diagnosis.live.job_groups import meeting_place
from allaboard.facts import Present
from allaboard.formats.dumps.process_roles import program_name

MAX_ARGUMENT_LENGTH = 40
"""Characters of an argument that may be part of a world's name."""
MIN_RANKS = 2
"""Ranks of a world of which not all were examined, from which it counts as one of its own."""


class World(NamedTuple):
    """The ranks that meet at one place."""

    name: str
    """What a person would call it: its script, with the place where that is needed to tell it from others."""
    meets_at: str
    """Where its ranks meet, for a person; "" if that is not known."""
    size: int
    """How many ranks it has, by its environments; 0 if that is not known."""
    processes: tuple[Present, ...]
    """Its ranks that were examined."""


def divide_worlds(ranks: Sequence[Present]) -> tuple[World, ...]:
    """Return the worlds of these processes; one if nothing shows that there are several."""
    at_place: dict[tuple[str, ...], list[Present]] = defaultdict(list)
    homeless: list[Present] = []
    for process in ranks:
        meeting = _meeting_of(process)
        (at_place[meeting] if meeting else homeless).append(process)
    groups: list[list[Present]] = []
    for processes in at_place.values():
        # Those that cannot be two worlds are one, of which some were told another place.
        group = next((g for g in groups if not _are_apart(g, processes)), None)
        if group is None:
            groups.append(list(processes))
        else:
            group += processes
    if len(groups) < 2:
        return (_world(ranks, ""),)
    for process in homeless:
        groups[_nearest(process, groups)].append(process)
    return tuple(
        _world(sorted(group, key=_display_order), name)
        for group, name in zip(groups, _names(groups), strict=True)
    )


def _names(groups: Sequence[Sequence[Present]]) -> list[str]:
    """Return the programs, with what tells worlds of one program apart: an argument, else the place."""
    programs = [_program(g) for g in groups]
    arguments = [_own_arguments(g, groups) for g in groups]
    with_arguments = [f"{p} {a}".rstrip() for p, a in zip(programs, arguments, strict=True)]
    for names in (programs, with_arguments):
        if len(set(names)) == len(names):
            return names
    return [f"{p} at {_place_text(g)}" for p, g in zip(programs, groups, strict=True)]


def _own_arguments(group: Sequence[Present], groups: Sequence[Sequence[Present]]) -> str:
    """Return the first argument that all ranks of this world have and those of no other world, with its
    option."""
    common = set.intersection(*(set(p.command) for p in group))
    elsewhere = {a for g in groups if g is not group for p in g for a in p.command}
    command = group[0].command
    for number, argument in enumerate(command[1:], 1):
        if argument in common - elsewhere and len(argument) <= MAX_ARGUMENT_LENGTH:
            option = command[number - 1]
            return f"{option} {argument}" if option.startswith("-") else argument
    return ""


def _world(processes: Sequence[Present], name: str) -> World:
    size = max((resolve(p.stated).world_size for p in processes), default=0)
    return World(name, _place_text(processes), size, tuple(processes))


def _meeting_of(process: Present) -> tuple[str, ...]:
    """Return where the process meets the others of its world; () if nothing states it."""
    stated = process.stated
    if "TF_CONFIG" in stated:
        return ()  # a cluster lists all of its tasks, also those of other jobs
    meeting = meeting_place(stated, "")
    return (*meeting, stated.get("MASTER_ADDR", "")) if meeting else ()


def _are_apart(group: Sequence[Present], other_group: Sequence[Present]) -> bool:
    """Return True if two groups that state different places are two worlds."""
    ranks, other_ranks = _ranks(group), _ranks(other_group)
    if not ranks & other_ranks:
        return False
    complete = [is_complete_world(group), is_complete_world(other_group)]
    if min(len(ranks), len(other_ranks)) >= MIN_RANKS or all(complete):
        return True
    # One rank that is there twice, of the same program, may be a mistake in its settings.
    return any(complete) and _program(group) != _program(other_group)


def _ranks(group: Sequence[Present]) -> set[int]:
    return {p.member.who.rank for p in group if p.member.who.rank >= 0}


def is_complete_world(group: Sequence[Present]) -> bool:
    """Return True if all ranks of the stated size are here, each once."""
    sizes = {resolve(p.stated).world_size for p in group}
    ranks = sorted(p.member.who.rank for p in group)
    return len(sizes) == 1 and ranks == list(range(next(iter(sizes)))) != []


def _nearest(process: Present, groups: Sequence[Sequence[Present]]) -> int:
    """Return the group to which a process without a place has most connections, else that of its program."""
    own_ends = {(s.remote, s.local) for s in process.sockets if s.state == "ESTAB"}
    program = program_name(" ".join(process.command))

    def closeness(number: int) -> tuple[int, bool]:
        group = groups[number]
        shared = sum((s.local, s.remote) in own_ends for p in group for s in p.sockets)
        return shared, program == _program(group)

    return max(range(len(groups)), key=closeness)


def _program(group: Sequence[Present]) -> str:
    """Return the script; of processes that multiprocessing started, the function that each of them runs."""
    name = program_name(" ".join(group[0].command))
    stack = group[0].member.stack
    if name or stack is None:
        return name or "python"
    outermost = next((f for f in reversed(stack.frames) if f.is_user), None)
    return f"{outermost.function} of {PurePath(outermost.file).name}" if outermost else "python"


def _place_text(group: Sequence[Present]) -> str:
    stated = group[0].stated
    if stated.get("INIT_METHOD", "env://") != "env://":
        return stated["INIT_METHOD"]
    if "JAX_COORDINATOR_ADDRESS" in stated:
        return stated["JAX_COORDINATOR_ADDRESS"]
    if "MASTER_PORT" in stated:
        return f"{stated.get('MASTER_ADDR', '')}:{stated['MASTER_PORT']}"
    if "SLURM_STEP_ID" in stated:
        return f"step {stated.get('SLURM_JOB_ID', '')}.{stated['SLURM_STEP_ID']}"
    return ""


def _display_order(process: Present) -> tuple[bool, int]:
    rank = process.member.who.rank
    return rank < 0, rank
