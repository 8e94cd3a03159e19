"""Separation of one file into what each process wrote, so that a reader gets the plain lines of one. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import is_training
from allaboard.diagnosis.logs.rank_from_filename import TORCHRUN_LOG
from allaboard.facts import Exhibit
from allaboard.formats.dumps.dump_sections import label_dumps
from allaboard.formats.dumps.ipython_tracebacks import convert_headless
from allaboard.formats.dumps.json_lines import expand_json_lines
from allaboard.formats.dumps.local_ranks import assign_ranks
from allaboard.formats.dumps.log_prefixes import NO_LABEL, Label, split_labels
from allaboard.formats.dumps.log_sections import label_sections
from allaboard.formats.dumps.pasted_text import (
    indent_frames,
    missing_heads,
    unfold_traceback,
    unquote,
)
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

BINARY_CHECK_LENGTH = 4096
"""Bytes of the beginning in which a zero shows that the file is no text."""
MAX_PROCESSES = 20_000
"""Processes of one file; with more names than that, the prefixes name no processes."""
MIN_STEPS_AFTER = 2
"""Lines about loss or steps that show that a training goes on."""
MAX_FINAL_LINES = 2000
"""Lines at the end of a file among which they are looked for."""

_RANK_LABEL = re.compile(r"^\[rank(\d{1,7})\]:", re.MULTILINE)
_SUMMARY_RANK = re.compile(r"^[ \t]*rank[ \t]*: (\d{1,7}) \(local_rank: \d{1,7}\)", re.MULTILINE)
"""Matches a failed worker in torchrun's summary, which torchrun writes for all workers of its node."""
_OWN_RANK = re.compile(
    r"\bGLOBAL_RANK: (\d{1,7}), MEMBER: \d"  # Lightning
    r"|\bcomm 0x[0-9a-f]+ rank (\d{1,7}) nranks \d"  # NCCL, of the communicator of all ranks
    r"|\bJAX process: (\d{1,7}) / \d|\bdistributed init \(rank (\d{1,7})\)"
)
"""Matches what a process writes of its own rank."""


def unquote_lines(exhibit: Exhibit) -> Exhibit:
    """Return the exhibit without what a mail, an export or a runner put around each of its lines."""
    is_quoted = exhibit.data.startswith(b">") or b'"\n' in exhibit.data or b'File "' in exhibit.data
    if not is_quoted:
        return exhibit
    text = exhibit.text
    unquoted = unquote(text)
    if unquoted == text:
        return exhibit
    return msgspec.structs.replace(exhibit, data=unquoted.encode())


def restore_heads(exhibit: Exhibit) -> Exhibit:
    """Return the exhibit with a head before each traceback that was copied without it."""
    if b'", line ' not in exhibit.data and b"-> " not in exhibit.data:
        return exhibit
    lines = indent_frames(convert_headless(exhibit.text.split("\n")))
    headless = set(missing_heads(lines))
    unfolded = {
        n: parts for n, line in enumerate(lines) if len(parts := unfold_traceback(line)) > 1
    }
    if not headless and not unfolded:
        data = "\n".join(lines).encode()
        return exhibit if data == exhibit.data else msgspec.structs.replace(exhibit, data=data)
    restored: list[str] = []
    numbers: list[int] = []
    for index, line in enumerate(lines):
        number = exhibit.place_of_line(index).line
        if index in headless:
            restored += [TRACEBACK_HEAD, f"  {line.lstrip()}"]
            numbers += [number, number]
        else:
            parts = unfolded.get(index, [line])
            restored += parts
            numbers += [number] * len(parts)
    return msgspec.structs.replace(
        exhibit, data="\n".join(restored).encode(), numbers=tuple(numbers)
    )


def attribute_file(exhibit: Exhibit) -> Exhibit:
    """Return the exhibit with the rank that its own lines state, if its name or its folder has another
    number.

    That other number is the rank on its node, or the node's. In a file of a node with several ranks, lines
    that name no rank belong to none.
    """
    if exhibit.rank < 0:
        return exhibit
    text = exhibit.text
    stated_ranks = {int(r) for r in _RANK_LABEL.findall(text)} or _own_ranks(text)
    if not stated_ranks and (listed := {int(r) for r in _SUMMARY_RANK.findall(text)}):
        # It is what a launcher and its workers wrote: lines that name no rank are of none.
        is_own = listed == {exhibit.rank}
        return exhibit if is_own else msgspec.structs.replace(exhibit, rank=-1)
    torchrun_match = TORCHRUN_LOG.search(exhibit.name)
    if not stated_ranks and torchrun_match is not None and int(torchrun_match[1]) == exhibit.rank:
        return msgspec.structs.replace(exhibit, local=exhibit.rank)
    if (
        not stated_ranks
        or stated_ranks == {exhibit.rank}
        or (len(stated_ranks) > 1 and torchrun_match is not None)
    ):
        return exhibit
    return msgspec.structs.replace(
        exhibit, rank=stated_ranks.pop() if len(stated_ranks) == 1 else -1
    )


def _own_ranks(text: str) -> set[int]:
    """Return the rank that the text calls its own; nothing if it has several."""
    matches = list(_OWN_RANK.finditer(text))
    ranks = {int(next(filter(None, m.groups()))) for m in matches}
    return ranks if len(ranks) == 1 else set()


def split_by_process(exhibit: Exhibit) -> tuple[Exhibit, ...]:
    """Return a part for each process that a prefix names, and one for the lines without a prefix.

    The latter are for example a launcher's own. A file without any prefix is returned as it is.
    """
    if b"\0" in exhibit.data[:BINARY_CHECK_LENGTH]:
        return (exhibit,)
    text, line_numbers = expand_json_lines(exhibit.text)
    labelled_lines = label_dumps(label_sections(assign_ranks(split_labels(text))))
    labels = {label for label, _ in labelled_lines}
    if labels == {NO_LABEL} or len(labels) > MAX_PROCESSES:
        plain = "\n".join(line for _, line in labelled_lines)
        if plain == exhibit.text or len(labels) > MAX_PROCESSES:
            return (exhibit,)
        numbers_in_file = tuple(line_numbers) if text != exhibit.text else ()
        return (msgspec.structs.replace(exhibit, data=plain.encode(), numbers=numbers_in_file),)
    process_of = _process_labels(labels)
    pid_of = _only_pids(process_of)
    # What a node's launcher wrote itself is of none of its ranks, whatever the file is called.
    file_rank = exhibit.rank if all(label.local_rank < 0 for label in labels) else -1
    parts: dict[Label, tuple[list[str], list[int]]] = {}
    for number, (label, line) in zip(line_numbers, labelled_lines, strict=True):
        lines, numbers = parts.setdefault(process_of[label], ([], []))
        lines.append(line)
        numbers.append(number)
    return tuple(
        msgspec.structs.replace(
            exhibit,
            data="\n".join(lines).encode(),
            rank=label.rank if label.rank >= 0 else file_rank,
            host=label.host,
            pid=label.pid or pid_of.get(label, 0),
            numbers=tuple(numbers),
            labelled=label.by_launcher,
            local=label.local_rank,
            trained_after=label == NO_LABEL and _train_after_unlabelled(labelled_lines),
        )
        for label, (lines, numbers) in parts.items()
        if any(lines)
    )


def _train_after_unlabelled(labelled_lines: Sequence[tuple[Label, str]]) -> bool:
    """Return True if processes that a prefix names write of a training after the last line that has none."""
    last_unlabelled = next(
        (
            n
            for n in range(len(labelled_lines) - 1, -1, -1)
            if labelled_lines[n][0] == NO_LABEL and labelled_lines[n][1].strip()
        ),
        -1,
    )
    begin = max(last_unlabelled + 1, len(labelled_lines) - MAX_FINAL_LINES)
    return is_training((line for _, line in islice(labelled_lines, begin, None)), MIN_STEPS_AFTER)


def _only_pids(process_of: dict[Label, Label]) -> dict[Label, int]:
    """Return, by the label of a process, its pid, if its lines name only one."""
    pids: dict[Label, set[int]] = defaultdict(set)
    for label, process in process_of.items():
        pids[process].add(label.pid)
    only = {process: pids_found - {0} for process, pids_found in pids.items()}
    return {
        process: pids_found.pop() for process, pids_found in only.items() if len(pids_found) == 1
    }


def _process_labels(labels: set[Label]) -> dict[Label, Label]:
    """Return, by label, the label of the process: several labels may name one.

    A rank has one label, and a pod or a pid of which only one rank is known is that rank's.
    """
    ranks_by_source: dict[tuple[str, int], set[int]] = defaultdict(set)
    for label in labels:
        if label.rank >= 0:
            ranks_by_source[label.host, label.pid].add(label.rank)
    launched_ranks = {label.rank for label in labels if label.by_launcher}
    process_of: dict[Label, Label] = {}
    for label in labels:
        ranks = ranks_by_source[label.host, label.pid] if label.host or label.pid else set()
        is_single_rank = label.rank < 0 and label.local_rank < 0 and len(ranks) == 1
        rank = next(iter(ranks)) if is_single_rank else label.rank
        launcher = label.by_launcher or (rank >= 0 and rank in launched_ranks)
        if rank >= 0:
            # The same rank of another host or pid is the one that was started anew.
            process_of[label] = Label(rank, by_launcher=launcher, local_rank=label.local_rank)
        else:
            process_of[label] = label
    return process_of
