"""Prefixes that launchers and log collectors put before each line, and the process that they name. Pure.

The forms are those of Slurm (`srun -l`), Open MPI (`--tag-output`), horovodrun, torchrun, MPICH and Intel MPI
(`-prepend-rank`, `-l`), Ray, Kubernetes (CRI's log files, `kubectl logs --prefix --timestamps`, stern),
Docker Compose, and journald. Those of any other logger are learned (`learned_prefixes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from allaboard.formats.dumps.learned_prefixes import (
    LearnedPrefix,
    learn_prefixes,
    sources_of,
    without_prefix,
)

COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*[mK]")
"""Matches ECMA-48's SGR and EL: they colour a label, or what is after it."""
_PROGRESS_BAR = re.compile(
    r"^[^\n|]{0,120}?\d{1,3}%\|[^|\n]{0,400}\|[^\[\n]{0,80}\[[^\]\n]{0,160}\]"
    r"(?=[EF]\d{4} \d\d:|\[rank\d|Traceback \(|\*\*\* |terminate called)"
)
"""A bar of tqdm, which ends without a new line: what another stream writes then begins behind it."""
MAX_PREFIXES = 6
"""Prefixes of one line: a collector's time, its pod, a launcher's task, two of loggers, torch's rank."""
MAX_SAMPLED_LINES = 400
"""Lines, half from the beginning and half from the end, by which an ambiguous form is judged."""
_LAUNCHER_LINE = re.compile(
    r"(?:srun|slurmstepd|salloc|sbatch|mpirun|mpiexec|prterun|orterun): |-{20,}$"
)
"""Matches lines that a launcher writes itself, without a prefix."""
_ERROR_LINE = re.compile(
    r"(?:\[rank\d+\]: ?)?(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|ERROR|WARN)\b"
)
"""Matches an exception's last line, and a record that a logger calls an error."""
_STACK_HEAD = "Stack trace of the failed collective:"
_STACK_ROW = re.compile(r"#\d{1,4} \S")
"""Matches PyTorch's rows of one collective's stack: only their head has torch's prefix."""
_TORCH_LABELS = re.compile(r"^\[rank\d{1,7}\]: ?", re.MULTILINE)
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"

_TAG = "]<std"
"""In the tag of mpirun and horovodrun before a line: the rank and its stream."""
_DATE = r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}:? ?)?"
"""The time as C's `ctime` writes it, which mpirun --timestamp-output and horovodrun put before the rank."""
_UNIT = r"(?P<host>[\w.-]+) (?:[\w./@-]+\[(?P<pid>\d+)\]|kernel)"


class Label(NamedTuple):
    """The process that a prefix names."""

    rank: int = -1
    """Its rank, -1 if the prefix names none."""
    host: str = ""
    """Its host, or what stands for one (a pod, a service)."""
    pid: int = 0
    """Its process id, 0 if the prefix names none."""
    by_launcher: bool = True
    """Set if the prefix is before every line of its process; torch's own ``[rank1]:`` is before some."""
    local_rank: int = -1
    """Its rank on its node, -1 if the prefix names none."""

    def within(self, outer: Label) -> Label:
        """Return this label, completed by the prefixes before it.

        If this names a rank on a node, the task outside it is the node's own launcher, and no rank.
        """
        host, pid = self.host or outer.host, self.pid or outer.pid
        rank = self.rank if self.rank >= 0 else outer.rank
        if self.local_rank >= 0 and self.rank < 0 and outer.rank >= 0:
            rank, host = -1, host or f"task {outer.rank}"
        local = self.local_rank if self.local_rank >= 0 else outer.local_rank
        return Label(rank, host, pid, self.by_launcher or outer != NO_LABEL, local)


NO_LABEL = Label(by_launcher=False)


class PrefixForm(NamedTuple):
    """One form of prefix."""

    pattern: re.Pattern[str]
    key: str = ""
    """Letters that are in every file that has this form."""
    share: float = 0.0
    """Share of the lines that must have it; 0.0 for a form that is never anything else."""
    repeats: bool = False
    """Set if it must name each process several times: a numbered list does not."""
    aligned: bool = False
    """Set if it must end in one column."""
    stays_in_line: bool = False
    """Set if it stays, as part of what the process wrote."""


def _form(pattern: str, key: str = "", share: float = 0.0, **options: bool) -> PrefixForm:
    return PrefixForm(re.compile(pattern), key, share, **options)


# The first form that matches a line is taken: a line of the CRI, too, begins with a time.
PREFIX_FORMS = (
    _form(rf"{_TIME} (?:stdout|stderr) [FP] ", " F "),  # the CRI's log format
    _form(rf"{_TIME} (?:stdout|stderr)(?: |$)", " std", share=0.8),  # the same, passed on by others
    _form(rf"{_TIME} {_UNIT}: ", share=0.5),  # journalctl -o short-iso
    _form(rf"[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {_UNIT}: ", share=0.5),
    _form(rf"{_TIME}(?: |$)", share=0.8),
    _form(  # torch_xla's xla_dist: the host, and its number
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?P<host>\d{1,3}(?:\.\d{1,3}){3}) \[\d{1,5}\](?: |$)",
        share=0.8,
    ),
    _form(  # Polyaxon: the time, and the replica
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC)? (?P<host>(?:master|worker|ps|chief|launcher|job)"
        r"\.\d{1,5}) -- ",
        " -- ",
        share=0.8,
    ),
    _form(_DATE + r"\[\d+,(?P<rank>\d{1,7})\]<std(?:out|err|diag)>:", _TAG),  # Open MPI 4
    _form(_DATE + r"\[[\w.@-]+,(?P<rank>\d{1,7})\]<std(?:out|err|diag)>: ?", _TAG),  # Open MPI 5
    _form(_DATE + r"\[(?P<rank>\d{1,7})\]<std(?:out|err)>:", _TAG),  # horovodrun
    _form(  # SageMaker's
        r"\[\d+,mpirank:(?P<rank>\d{1,7}),(?P<host>[\w.-]+)\]<std(?:out|err)>: ?", "mpirank:"
    ),
    _form(  # Determined's
        r"[^\[\n]{0,12}\[[\d :.TZ-]{16,34}\] [\w.-]{1,40} (?:\[rank=(?P<rank>\d{1,7})\] )?\|\|(?: |$)",
        "] ",
    ),
    _form(  # `structured_records`
        r"\[record(?: rank=(?P<rank>\d{1,7}))?(?: host=(?P<host>[\w.-]+))?(?: pid=(?P<pid>\d{1,9}))?\] ",
        "[record ",
    ),
    _form(r"\[pod/(?P<host>[\w.-]+)/[\w.-]+\] ?", "[pod/"),
    _form(
        r"\((?:[\w.()-]{1,200},? )?(?:rank=\d{1,7}, )?pid=(?P<pid>\d*)(?:, ip=(?P<host>[\w.:]+))?\) ?",
        "pid=",
    ),
    _form(r"\[rank(?P<rank>\d{1,7})\]:", "[rank", stays_in_line=True),
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


def without_torch_labels(text: str) -> str:
    """Return the text of one process without the ``[rank1]: `` that PyTorch puts before its lines."""
    return _TORCH_LABELS.sub("", text) if "[rank" in text else text


def split_labels(text: str) -> list[tuple[Label, str]]:
    """Return each line without its prefixes, and the process that they name."""
    lines = [(NO_LABEL, _visible(line)) for line in text.split("\n")]
    for _ in range(MAX_PREFIXES):
        forms = [
            f
            for f in PREFIX_FORMS
            if f.key in text and _is_prefix_here(f, [line for _, line in lines])
        ]
        stripped = [_strip_prefix(labelled, forms) for labelled in lines] if forms else lines
        if stripped == lines:
            learned = learn_prefixes(text, [line for _, line in lines])
            stripped = _strip_learned(lines, learned) if learned else lines
        if stripped == lines:
            break
        lines = stripped
    return list(_label_stack_rows(lines)) if _STACK_HEAD in text else lines


def _label_stack_rows(lines: Iterable[tuple[Label, str]]) -> Iterator[tuple[Label, str]]:
    """Yield the lines, with the label of the stack's head for rows that have none."""
    stack_owner: Label | None = None
    for label, line in lines:
        if stack_owner is not None and label == NO_LABEL and _STACK_ROW.match(line):
            yield stack_owner, line
            continue
        stack_owner = label if _STACK_HEAD in line else None
        yield label, line


def _visible(line: str) -> str:
    """Return the line as a terminal shows it: after the last carriage return, without colours."""
    visible = line.rstrip("\r").rpartition("\r")[2]
    visible = COLOUR_CODE.sub("", visible) if "\x1b" in visible else visible
    return _PROGRESS_BAR.sub("", visible) if "%|" in visible else visible


def _strip_prefix(
    labelled_line: tuple[Label, str], forms: Iterable[PrefixForm]
) -> tuple[Label, str]:
    label, line = labelled_line
    for form in forms:
        match = form.pattern.match(line)
        if match is not None:
            groups = match.groupdict()
            inner = Label(
                rank=int(groups.get("rank") or -1),
                host=groups.get("host") or "",
                pid=int(groups.get("pid") or 0),
                by_launcher=not form.stays_in_line,
                local_rank=int(groups.get("local") or -1),
            )
            line_text = line if form.stays_in_line else line[match.end() :]
            # Open MPI writes its tag again before each piece that a program writes of one line.
            tag = match[0][match[0].find("[") :] if form.key == _TAG else ""
            return inner.within(label), line_text.replace(tag, "") if tag else line_text
    return label, line


def _strip_learned(
    lines: Sequence[tuple[Label, str]], learned: Sequence[LearnedPrefix]
) -> list[tuple[Label, str]]:
    matches = [
        next(filter(None, (form.pattern.match(line) for form in learned)), None)
        for _, line in lines
    ]
    source_of = sources_of(match[0] for match in matches if match is not None)
    return [
        labelled if match is None else _strip_match(labelled, match, source_of.get(match[0], ""))
        for labelled, match in zip(lines, matches, strict=True)
    ]


def _strip_match(
    labelled_line: tuple[Label, str], match: re.Match[str], source: str
) -> tuple[Label, str]:
    label, line = labelled_line
    groups = match.groupdict()
    inner = Label(
        rank=int(groups.get("rank") or -1),
        host=source,
        pid=int(groups.get("pid") or 0),
        local_rank=int(groups.get("local") or -1),
    )
    return inner.within(label), without_prefix(line, match)


def _is_prefix_here(form: PrefixForm, lines: Sequence[str]) -> bool:
    """Return True if a form is a prefix in these lines, and not part of their text."""
    if not form.share:
        return True
    half = MAX_SAMPLED_LINES // 2
    sampled = lines if len(lines) <= MAX_SAMPLED_LINES else [*lines[:half], *lines[-half:]]
    sampled = [line for line in sampled if line.strip() and not _LAUNCHER_LINE.match(line)]
    matches = list(filter(None, map(form.pattern.match, sampled)))
    if len(matches) < 2 or len(matches) < form.share * len(sampled):
        return False
    if form.aligned and len({len(m[0].rstrip()) for m in matches}) > 1:
        return False
    if not form.repeats or 2 * len({m[0].strip() for m in matches}) <= len(matches):
        return True
    # Several processes may write one line each: then all write the same error.
    texts = {m.string[m.end() :] for m in matches}
    return 2 * len(texts) <= len(matches) and all(map(_ERROR_LINE.match, texts))
