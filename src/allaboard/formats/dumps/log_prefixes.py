"""What launchers and log collectors put before each line, and whom it names. Pure.

The forms are those of Slurm (`srun -l`), Open MPI (`--tag-output`), horovodrun, torchrun, MPICH and Intel
MPI (`-prepend-rank`, `-l`), Ray, Kubernetes (CRI's log files, `kubectl logs --prefix --timestamps`, stern),
Docker Compose, and journald.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*[mK]")
"""ECMA-48's SGR and EL: they colour a label, or what is after it."""
MAX_PREFIXES = 4
"""Prefixes of one line: a collector's time, its pod, a launcher's task, torch's rank."""
MAX_SAMPLED_LINES = 400
"""Lines, half from the beginning and half from the end, by which an ambiguous form is judged."""
_LAUNCHERS = re.compile(
    r"(?:srun|slurmstepd|salloc|sbatch|mpirun|mpiexec|prterun|orterun): |-{20,}$"
)
"""Lines that a launcher writes of its own, without a prefix."""
_HEAD = "Stack trace of the failed collective:"
_ROW = re.compile(r"#\d{1,4} \S")
"""What PyTorch writes of one collective: the first line alone has torch's prefix."""
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"

_UNIT = r"(?P<host>[\w.-]+) (?:[\w./@-]+\[(?P<pid>\d+)\]|kernel)"


class Label(NamedTuple):
    """Whom a prefix names: a ``rank`` (-1 where none), a ``host`` or what stands for one (a pod, a
    service), a ``pid`` (0 where none). ``launcher``: put before every line of its process; torch's own
    ``[rank1]:`` is before some. ``local``: its number on its node, -1 where none is told."""

    rank: int = -1
    host: str = ""
    pid: int = 0
    by_launcher: bool = True
    local_rank: int = -1

    def within(self, outer: Label) -> Label:
        """With what the prefixes before it named. Where this tells a number on a node, the task outside it
        is the node's own launcher, and no rank."""
        host, pid = self.host or outer.host, self.pid or outer.pid
        rank = self.rank if self.rank >= 0 else outer.rank
        if self.local_rank >= 0 and self.rank < 0 and outer.rank >= 0:
            rank, host = -1, host or f"task {outer.rank}"
        local = self.local_rank if self.local_rank >= 0 else outer.local_rank
        return Label(rank, host, pid, self.by_launcher or outer != NO_LABEL, local)


NO_LABEL = Label(by_launcher=False)


class PrefixForm(NamedTuple):
    """One form of prefix. ``key``: letters that are in every file with it. ``share``: the part of the lines
    that must have it, 0.0 for a form that is nothing else. ``repeats``: it must name each several times: a
    numbered list does not. ``aligned``: it must end in one column. ``kept``: it stays, as part of what
    the process wrote."""

    pattern: re.Pattern[str]
    key: str = ""
    share: float = 0.0
    repeats: bool = False
    aligned: bool = False
    stays_in_line: bool = False


def _form(pattern: str, key: str = "", share: float = 0.0, **how: bool) -> PrefixForm:
    return PrefixForm(re.compile(pattern), key, share, **how)


PREFIX_FORMS = (
    _form(rf"{_TIME} (?:stdout|stderr) [FP] ", " F "),  # the CRI's log format
    _form(rf"{_TIME} {_UNIT}: ", share=0.5),  # journalctl -o short-iso
    _form(rf"[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {_UNIT}: ", share=0.5),
    _form(rf"{_TIME}(?: |$)", share=0.8),
    _form(r"\[\d+,(?P<rank>\d{1,7})\]<std(?:out|err|diag)>:", "]<std"),  # Open MPI 4
    _form(r"\[[\w.@-]+,(?P<rank>\d{1,7})\]<std(?:out|err|diag)>: ?", "]<std"),  # Open MPI 5
    _form(r"\[(?P<rank>\d{1,7})\]<std(?:out|err)>:", "]<std"),  # horovodrun
    _form(r"\[pod/(?P<host>[\w.-]+)/[\w.-]+\] ?", "[pod/"),
    _form(r"\((?:[\w.()-]{1,200} )?pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:]+))?\) ?", "pid="),
    _form(r"\[rank(?P<rank>\d{1,7})\]:", "[rank", kept=True),
    _form(r"\[default(?P<local>\d{1,7})\]:", "[default"),  # torchrun: the local rank
    _form(r" {0,6}(?P<rank>\d{1,7}):(?: |$)", share=0.5, repeats=True),  # srun -l
    _form(r"\[(?P<rank>\d{1,7})\]:?(?: |$)", share=0.5, repeats=True),
    _form(r"(?P<host>[A-Za-z0-9][\w.-]{0,80}) +\|(?: |$)", share=0.8, repeats=True, aligned=True),
    _form(
        r"(?P<host>[a-z0-9][a-z0-9.]*(?:-[a-z0-9]+)+) [a-z0-9-]{1,63}(?: |$)",
        share=0.95,
        repeats=True,
    ),
)


def split_labels(text: str) -> list[tuple[Label, str]]:
    """Each line without its prefixes, and whom they name."""
    lines = [(NO_LABEL, _visible(line)) for line in text.split("\n")]
    for _ in range(MAX_PREFIXES):
        forms = [
            f for f in PREFIX_FORMS if f.key in text and _holds(f, [line for _, line in lines])
        ]
        read = [_read(one, forms) for one in lines] if forms else lines
        if read == lines:
            break
        lines = read
    return list(_continued(lines)) if _HEAD in text else lines


def _continued(lines: Iterable[tuple[Label, str]]) -> Iterator[tuple[Label, str]]:
    """With whose stack it is, for the rows that name nobody."""
    whose: Label | None = None
    for label, line in lines:
        if whose is not None and label == NO_LABEL and _ROW.match(line):
            yield whose, line
            continue
        whose = label if _HEAD in line else None
        yield label, line


def _visible(line: str) -> str:
    """A line as a terminal shows it: a progress bar was written over, colours are none of its letters."""
    shown = line.rstrip("\r").rpartition("\r")[2]
    return COLOUR_CODE.sub("", shown) if "\x1b" in shown else shown


def _read(one: tuple[Label, str], forms: Iterable[PrefixForm]) -> tuple[Label, str]:
    label, line = one
    for form in forms:
        match = form.pattern.match(line)
        if match is not None:
            named = match.groupdict()
            inner = Label(
                rank=int(named.get("rank") or -1),
                host=named.get("host") or "",
                pid=int(named.get("pid") or 0),
                by_launcher=not form.stays_in_line,
                local_rank=int(named.get("local") or -1),
            )
            return inner.within(label), line if form.stays_in_line else line[match.end() :]
    return label, line


def _holds(form: PrefixForm, lines: Sequence[str]) -> bool:
    """Whether a form is a prefix here, and not part of what the lines say."""
    if not form.share:
        return True
    half = MAX_SAMPLED_LINES // 2
    some = lines if len(lines) <= MAX_SAMPLED_LINES else [*lines[:half], *lines[-half:]]
    some = [line for line in some if line.strip() and not _LAUNCHERS.match(line)]
    matches = list(filter(None, map(form.pattern.match, some)))
    if len(matches) < 2 or len(matches) < form.share * len(some):
        return False
    if form.aligned and len({len(m[0].rstrip()) for m in matches}) > 1:
        return False
    return not form.repeats or 2 * len({m[0].strip() for m in matches}) <= len(matches)
