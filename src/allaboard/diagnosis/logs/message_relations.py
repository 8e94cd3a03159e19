"""Messages of several members, read together: which of them explain others, and what a member's own end says.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from allaboard.diagnosis.readers.coordination_log import LEFT_EARLY
from allaboard.diagnosis.readers.gloo_log import RPC_WRITER
from allaboard.diagnosis.readers.torch_log import PORT_TAKEN, TWO_RANK_ZEROS, TWO_RANK_ZEROS_EXPLAIN
from allaboard.diagnosis.wordings.torch_messages import OVERDUE_WORDS, STUCK_WATCHDOG
from allaboard.facts import Certainty, Heard, Who
from allaboard.facts.rank_sets import name_ranks

_ONE_GPU = re.compile(r"ranks (?P<ranks>[\d, and]+) use one GPU \(CUDA device (?P<device>\w+)\)$")
_LEADER = "the leader (process 0"
"""Begins the sentence on a coordination service that is not reached any more."""
_STORE_SERVES = "the store of rank 0 counted"
"""Begins the sentence of the process that serves the store, of which each job has one."""
_LEFT_FIX_JAX = (
    "jax.distributed.shutdown()   # as the last call of every process: it waits for all; then see that all "
    "do the same number of steps"
)
_LEFT_FIX_TENSORFLOW = (
    "steps_per_epoch=N with dataset.repeat()   # the same number of steps on every worker, and nothing after "
    "the training that one worker does alone with the strategy"
)
_LEFT_FIX_TORCH = (
    "dist.barrier(); dist.destroy_process_group()   # as the last calls of every rank; and the same number "
    "of batches on all: DistributedSampler, drop_last=True"
)


def relate_messages(
    heard: Sequence[Heard],
    last_words: Mapping[tuple[str, int], str],
    is_wait: frozenset[str],
    failed_rules: frozenset[str],
    is_loss: frozenset[str] = frozenset(),
) -> list[Heard]:
    """Return the messages without those that others explain.

    Args:
        heard: Each message once, with all who wrote it.
        last_words: How the log of a member ends that says that its work is done, by job and index.
        is_wait: Rules that report members which waited for others, or lost them.
        failed_rules: Rules of other findings than messages.
        is_loss: Rules that report members which went away, or sent nothing more.
    """
    causes = _without_losses_after_timeouts(_without_victims(heard, is_loss), is_wait, is_loss)
    causes = _without_rpc_victims(_without_stuck_watchdogs(causes))
    amended = [_as_own_port(h) for h in _with_shared_gpus(_with_two_firsts(causes))]
    amended = [_as_left_early(h, last_words) if h.rule in is_wait else h for h in amended]
    active = [h for h in amended if not h.only_explains or _has_explained(h, amended, failed_rules)]
    left_places = {s.place for h in active if h.rule == LEFT_EARLY for s in h.speakers}
    return [
        h
        for h in active
        if not (
            _is_explained(h, active)
            or (left_places and h.rule in is_wait and not _names_others(h, active))
        )
    ]


def _without_victims(heard: Sequence[Heard], is_loss: frozenset[str]) -> list[Heard]:
    """Return the messages about lost members without those that reported the loss of another one themselves,
    and with one message for each lost member.

    A worker that is killed takes its peers along: each of them is then lost to the next one. Who wrote
    nothing is where it began; if all of them wrote, nobody can be told from the others.
    """
    losses = [h for h in heard if h.rule in is_loss]
    writers = {s.rank for h in losses for s in h.speakers} - {-1}
    began_with = {w for h in losses for w in _lost_numbers(h) if w not in writers}
    if not began_with:
        return list(heard)
    kept: list[Heard] = []
    for message in heard:
        lost = _lost_numbers(message) if message.rule in is_loss else frozenset()
        if not lost:
            kept.append(message)
        elif not lost <= writers:
            kept.append(_about_only(message, lost - writers) if lost & writers else message)
    # A connection that broke proves an end; who sends nothing may as well be stopped.
    by_loss: dict[frozenset[int], Heard] = {}
    for message in kept:
        lost = _lost_numbers(message) if message.rule in is_loss else frozenset()
        if lost and (lost not in by_loss or _proves_end(message) > _proves_end(by_loss[lost])):
            by_loss[lost] = message
    return [h for h in kept if h.rule not in is_loss or by_loss.get(_lost_numbers(h), h) is h]


def _without_losses_after_timeouts(
    heard: Sequence[Heard], is_wait: frozenset[str], is_loss: frozenset[str]
) -> list[Heard]:
    """Return the messages without peers that went away, nobody knows which, where others gave up waiting.

    If every rank wrote something, and some waited until their timeout, their end is what closed the
    connections of the rest. The messages must be of different ranks.
    """
    given_up = {s.rank for h in heard if h.rule in is_wait - is_loss for s in h.speakers} - {-1}
    return [
        h
        for h in heard
        if not (
            given_up
            and h.rule in is_loss
            and not h.about
            and not h.silent
            and {s.rank for s in h.speakers}.isdisjoint(given_up | {-1})
        )
    ]


def _without_stuck_watchdogs(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages without watchdogs that stand still, if other ranks' watchdogs report a collective.

    Whoever gives up a collective aborts its communicator, and that call waits where the collective does: the
    watchdogs that stand still since then are victims too.
    """
    has_timeout = any(OVERDUE_WORDS in s.line for h in heard for s in h.speakers)
    return [h for h in heard if not (has_timeout and STUCK_WATCHDOG in h.speakers[0].line)]


def _without_rpc_victims(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages without members of RPC that had lost another one themselves before they went."""
    losses = [h for h in heard if RPC_WRITER.search(h.speakers[0].line)]
    writers = {m[1] for h in losses for s in h.speakers if (m := RPC_WRITER.search(s.line))}
    victims = [h for h in losses if h.says.partition(",")[0] in writers]
    return list(heard) if len(victims) == len(losses) else [h for h in heard if h not in victims]


def _lost_numbers(heard: Heard) -> frozenset[int]:
    """Return the ranks that a message about a loss names, or else leaves over; of other jobs than workers
    none."""
    if _LEADER in heard.says:
        return frozenset((0,))
    if heard.about:
        is_worker = all(w.job == "worker" for w in heard.about)
        return frozenset(w.index for w in heard.about) if is_worker else frozenset()
    return frozenset(heard.silent)


def _proves_end(heard: Heard) -> bool:
    return "went away" in heard.says


def _about_only(heard: Heard, numbers: frozenset[int]) -> Heard:
    """Return the message about these members alone; unchanged if its sentence does not list them."""
    for noun in ("process", "worker"):
        old = ", ".join(f"{noun} {w.index}" for w in heard.about)
        new = ", ".join(f"{noun} {w.index}" for w in heard.about if w.index in numbers)
        if old in heard.says:
            return msgspec.structs.replace(
                heard,
                says=heard.says.replace(old, new),
                fix=heard.fix.replace(old, new),
                about=tuple(w for w in heard.about if w.index in numbers),
            )
    return heard


def _with_shared_gpus(heard: Iterable[Heard]) -> list[Heard]:
    """Return the messages with one for each GPU that several ranks use: NCCL writes one for each pair."""
    kept: list[Heard] = []
    for message in heard:
        pair = _ONE_GPU.match(message.says)
        for place, earlier in enumerate(kept if pair is not None else ()):
            known = _ONE_GPU.match(earlier.says)
            if pair is None or known is None or pair["device"] != known["device"]:
                continue
            before, ranks = _ranks_of(known["ranks"]), _ranks_of(pair["ranks"])
            # Another host may have a GPU of the same bus number.
            if before & ranks:
                *names, last = map(str, sorted(before | ranks))
                kept[place] = msgspec.structs.replace(
                    earlier,
                    says=f"ranks {', '.join(names)} and {last} use one GPU (CUDA device {pair['device']})",
                    speakers=earlier.speakers + message.speakers,
                )
                break
        else:
            kept.append(message)
    return [_with_bus_id(h) for h in kept]


def _with_bus_id(heard: Heard) -> Heard:
    """Return the message on one GPU of several ranks with the GPU's PCI address, as nvidia-smi shows it.

    NCCL writes it as one hexadecimal number, without its colons: it is no index.
    """
    match = _ONE_GPU.match(heard.says)
    if match is None or not re.fullmatch(r"[0-9a-f]{1,12}", match["device"]):
        return heard
    number = int(match["device"], 16)
    domain, bus, device = number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF
    address = f"{domain:04x}:{bus:02x}:{device:02x}.{number & 0xF:x}"
    return msgspec.structs.replace(
        heard, says=f"ranks {match['ranks']} use one GPU (PCI {address})"
    )


def _with_two_firsts(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages with what a store that serves and a port that was taken prove together: two
    processes of one job take themselves for rank 0, and one of the other ranks is missing."""
    serving = [h for h in heard if h.says.startswith(_STORE_SERVES)]
    taken = [h for h in heard if h.rule == PORT_TAKEN and "rank 0" in h.says]
    servers = {s.place.file for h in serving for s in h.speakers}
    refused = {s.place.file for h in taken for s in h.speakers}
    if len(taken) != 1 or not serving or not refused.isdisjoint(servers):
        return list(heard)
    port = taken[0].says.partition("port ")[2].partition(" ")[0]
    both = Heard(
        rule=TWO_RANK_ZEROS,
        says=f"two processes of the job take themselves for rank 0: one serves the store, and port {port} "
        "was taken when the other wanted to listen there",
        speakers=(*taken[0].speakers, *serving[0].speakers),
        fix="echo $RANK   # in both: each process needs a number of its own; torchrun --node-rank, "
        "$SLURM_PROCID and $OMPI_COMM_WORLD_RANK count them",
        proves_not="which of the two is the right one",
        explains=TWO_RANK_ZEROS_EXPLAIN,
    )
    return [both if h is taken[0] else h for h in heard if h not in serving]


def _ranks_of(text: str) -> set[int]:
    return set(map(int, re.findall(r"\d+", text)))


def _is_explained(heard: Heard, active: Iterable[Heard]) -> bool:
    """Return True if another message explains this one, and is not explained by it in turn."""
    return any(heard.rule in h.explains and h.rule not in heard.explains for h in active)


def _has_explained(heard: Heard, messages: Iterable[Heard], failed_rules: frozenset[str]) -> bool:
    rules = {h.rule for h in messages if not h.only_explains} | failed_rules
    return not rules.isdisjoint(heard.explains)


def _names_others(heard: Heard, active: Iterable[Heard]) -> bool:
    """Return True if the message names members that did not leave early."""
    leavers = {(w.job, w.index) for h in active if h.rule == LEFT_EARLY for w in h.about}
    return any((w.job, w.index) not in leavers for w in heard.about)


def _as_own_port(heard: Heard) -> Heard:
    """Return a message that several members wrote about one port as what it proves: all are of this job."""
    ranks = sorted({s.rank for s in heard.speakers if s.rank >= 0})
    if heard.rule != PORT_TAKEN or len(ranks) < 2 or "rank 0" not in heard.says:
        return heard
    port = heard.says.partition("port ")[2].partition(" ")[0]
    names = ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")
    return msgspec.structs.replace(
        heard,
        says=f"the job itself holds port {port}: tasks {names} all wanted to listen there, so more than one "
        "of its members or launchers takes itself for the first (rank 0, node 0)",
        fix="start one launcher a node, each with its own number: srun --ntasks-per-node=1 bash -c "
        "'torchrun --node-rank=$SLURM_NODEID ...' (in single quotes: each node must expand it), or "
        "--rdzv-backend=c10d, which needs no number; and one RANK for each process",
        proves_not="which of them is to be the first",
        about=(),
    )


def _as_left_early(heard: Heard, last_words: Mapping[tuple[str, int], str]) -> Heard:
    """Return the message as its cause, if the log of each member that is waited for says that it is done."""
    leavers = heard.about or tuple(Who(index=r, rank=r) for r in heard.silent)
    writers = {("worker", s.rank) for s in heard.speakers}
    final_lines = [last_words.get((w.job, w.index), "") for w in leavers]
    if not leavers or not all(final_lines) or any((w.job, w.index) in writers for w in leavers):
        return heard
    names = ", ".join(_name(w, heard) for w in leavers)
    waiting = sorted({s.rank for s in heard.speakers if s.rank >= 0})
    waiting_names = name_ranks(waiting) if waiting else "the others"
    return Heard(
        rule=LEFT_EARLY,
        says=f"{names} finished ({final_lines[0]!r}) and left while {waiting_names} still needed "
        f"{'it' if len(leavers) == 1 else 'them'}",
        speakers=tuple(heard.speakers),
        fix=_left_fix(heard, leavers),
        about=leavers,
        certainty=Certainty.LIKELY,
        proves_not="that it was killed: its own log says that it was done",
    )


def _left_fix(heard: Heard, leavers: Sequence[Who]) -> str:
    if "process" in heard.says:
        return _LEFT_FIX_JAX
    return _LEFT_FIX_TENSORFLOW if any(w.rank < 0 for w in leavers) else _LEFT_FIX_TORCH


def _name(member: Who, heard: Heard) -> str:
    return f"process {member.index}" if "process" in heard.says else member.name
