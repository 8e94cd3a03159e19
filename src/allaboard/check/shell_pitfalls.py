"""Lines of a shell script that are not what they seem: commands that end before their last line, and
``#SBATCH`` lines that Slurm does not read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from allaboard.facts import Origin, Problem, Value
from allaboard.formats.cli_flags import words_after_program
from allaboard.formats.python_commands import PYTHON_PROGRAM, TORCHRUN_MODULES
from allaboard.formats.shell.sbatch_directives import read_batch_lines
from allaboard.formats.shell.script import Script

_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "srun", "mpirun", "mpiexec", "horovodrun")
_MAX_COMMENTS = 1000
"""Comments of one script that are examined."""
_REASONS = {
    "blank": "there is a blank after the backslash",
    "remark": "a comment stands after the backslash",
    "comment": "a comment stands among its lines",
    "end": "its line has no backslash at the end",
}


def blank_templates(text: str) -> str:
    """Return a Jinja template as a script with the same positions: what is filled in later becomes what
    only a run could tell, and the template's own commands become comments."""
    text = re.sub(r"\{\{([^{}\n]*)\}\}", lambda m: "$(" + " " * (len(m[0]) - 3) + ")", text)
    return re.sub(r"\{%([^{}\n]*)%\}", lambda m: "#" + " " * (len(m[0]) - 1), text)


def torn_commands(script: Script, file: str) -> Iterator[Problem]:
    """Yield a problem for each command of a launcher or of Python whose next line begins with an option
    that it does not get; one for all blanks of a command, which one correction removes."""
    begins: set[tuple[int, int]] = set()
    for command, position in script.torn_lines:
        if not _is_launch(command):
            continue
        begin = next((w.origin.line, w.origin.column) for w in command if w.text)
        if position.reason == "blank":
            if begin in begins:
                continue
            begins.add(begin)
        name = next(w.text for w in command if w.text).rpartition("/")[2]
        corrections = {
            "blank": f"sed -i 's/\\\\[[:blank:]]*$/\\\\/' {shlex.quote(file)}",
            "remark": "put the comment before the command",
            "comment": "put the comment before the command",
            "end": "\\   # at the very end of the line",
        }
        yield Problem(
            kind="torn",
            message=f"the command of {name} ends here: {_REASONS[position.reason]}, and the options after it "
            "are lost",
            observed=_REASONS[position.reason],
            correction=corrections[position.reason],
            origin=Origin(file=file, line=position.line, column=position.column),
        )


_ENDED_SSH = re.compile(
    r"(?:^|[;&|(]|\bdo\b|\bthen\b)\s*(?P<ssh>(?:nohup\s+)?(?:\S*/)?ssh\s[^'\"`;|&\n#]*?\s(?P<setup>cd"
    r"|export|source|\.|conda\s+activate|module\s+load)\s[^'\"`;|&\n#]*)(?P<end>;|&&)\s*(?P<rest>[^\n]*)"
)
"""Matches an ssh whose remote command, without quotes, ends in what lasts no longer than it."""
_STARTS = re.compile(
    r"\b(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun)\b"
)


def ended_remote_commands(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for ``ssh HOST cd DIR; torchrun …``: the shell here ends ssh's command at the ``;``."""
    joined = text.replace("\\\n", "  ")  # a command on several lines, with the same positions
    for match in _ENDED_SSH.finditer(joined):
        started = _STARTS.search(match["rest"])
        if started is None:
            continue
        begin = match.start("ssh")
        yield Problem(
            kind="torn",
            message=f"the command of ssh ends at the {match['end']}: {started[0]} behind it runs on this "
            "host, each time",
            observed=" ".join(match["ssh"].split())[:80] + match["end"],
            correction=f"ssh HOST '{match['setup']} … && {started[0]} …'   # in \"…\" if it has variables "
            "of this script",
            origin=Origin(
                file=file,
                line=text.count("\n", 0, begin) + 1,
                column=begin - text.rfind("\n", 0, begin),
            ),
        )


def _is_launch(command: Sequence[Value]) -> bool:
    if words_after_program(command, _LAUNCHERS, TORCHRUN_MODULES) is not None:
        return True
    return bool(command) and PYTHON_PROGRAM.match(command[0].text) is not None


def late_directives(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for each ``#SBATCH`` line below the first command, unless it repeats one above."""
    lines = text.split("\n")
    first_command_index = next(
        (n for n, t in enumerate(lines) if t.strip() and not t.lstrip().startswith("#")), None
    )
    if any(mark in text for mark in ("{{", "{%", "<%")):
        return  # a template: what its first line becomes, only its reader knows
    if first_command_index is None or not any(
        t.startswith("#SBATCH") for t in lines[first_command_index:]
    ):
        return
    from allaboard.formats.shell.tokenizer import read_comments

    read_directives = {(name, value.text) for name, value in read_batch_lines(text, file)}
    for number, comment in read_comments(text)[:_MAX_COMMENTS]:
        if number <= first_command_index + 1 or not lines[number - 1].startswith("#SBATCH"):
            continue
        for name, value in read_batch_lines(comment, file):
            if (name, value.text) not in read_directives:
                yield _late_problem(
                    name, value, number, lines[first_command_index], first_command_index + 1
                )


_PLACEHOLDER_PORT = re.compile(r"tcp://[\w.\[\]-]+:(?P<port>[A-Z][A-Z_]{2,})\b")
_PASTED_TWICE = re.compile(
    r"\.(?:ya?ml|json|py)(?P<second>(?:python[\d.]*[ \t]+-m|torchrun|accelerate[ \t]+launch|deepspeed)[ \t])"
)


def pasted_commands(text: str, file: str) -> Iterator[Problem]:
    """Yield what was pasted into a command and never filled in, and commands that were pasted twice."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _STARTS.search(line) or re.match(r"\s*(?:#|echo\b|printf\b|usage)", line, re.I):
            continue
        port, pasted = _PLACEHOLDER_PORT.search(line), _PASTED_TWICE.search(line)
        if port is not None:
            yield Problem(
                kind="launch",
                message=f"{port['port']} stands where a number belongs: the port was never filled in",
                observed=port[0],
                correction=port[0].removesuffix(port["port"]) + "29500",
                origin=Origin(file=file, line=number, column=port.start("port") + 1),
            )
        if pasted is not None:
            yield Problem(
                kind="launch",
                message="a second command begins in the middle of this line, and becomes an argument of the "
                "first: it was pasted twice",
                observed=line[pasted.start() : pasted.end()].strip(),
                correction=line[: pasted.start("second")].strip(),
                origin=Origin(file=file, line=number, column=pasted.start("second") + 1),
            )


_SMALL_LETTERS = re.compile(r"#(?!SBATCH\b)[Ss][Bb][Aa][Tt][Cc][Hh]\s+(?P<flag>-{1,2}[\w-]+)")


def small_letter_directives(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for each `#sbatch` of a batch script: Slurm reads the name in capitals alone."""
    first_command = re.search(r"^(?![ \t]*#)[ \t]*\S", text, re.M)
    head = text[: first_command.start()] if first_command else text
    if "#SBATCH" not in head:
        return
    for number, line in enumerate(head.split("\n"), 1):
        match = _SMALL_LETTERS.match(line)
        if match is None:
            continue
        yield Problem(
            kind="late",
            message=f"{line.split()[0]} is a comment to sbatch, which reads #SBATCH in capitals alone",
            observed=line.strip()[:80],
            correction=f"#SBATCH{line[len('#SBATCH') :].rstrip()[:80]}",
            origin=Origin(flag=match["flag"], file=file, line=number, column=1),
        )


_SIZE = re.compile(
    r"#(?:SBATCH\s+(?:--nodes|-N|--ntasks|-n|--ntasks-per-node|--gres|--gpus\S*|-G|--array|-a)[= ]?"
    r"|PBS\s+-l\s+|BSUB\s+-(?:n|R|gpu)\s+)[^#\n$]*(?P<variable>\$\{?[A-Za-z_]\w*\}?)"
)
_PROGRAMS = {"S": "sbatch", "P": "qsub", "B": "bsub"}


def unexpanded_directives(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for each directive that takes a size from a variable: no shell reads these lines
    [sbatch(1), qsub(1B)]. What a template or another script fills in is left alone."""
    first_command = re.search(r"^(?![ \t]*#)[ \t]*\S", text, re.M)
    head = text[: first_command.start()] if first_command else text
    if re.search(r"te?mpl", file, re.I) or "envsubst" in text:
        return
    for number, line in enumerate(head.split("\n"), 1):
        match = _SIZE.match(line)
        if match is None:
            continue
        program, variable = _PROGRAMS[line[1]], match["variable"]
        yield Problem(
            kind="late",
            message=f"{program} reads {variable} in this line as text: no shell expands it",
            observed=line.strip()[:80],
            correction=f"a number here, or on the command line: {program} … {file}",
            origin=Origin(
                flag="--nodes", file=file, line=number, column=match.start("variable") + 1
            ),
        )


def _late_problem(name: str, value: Value, line: int, command: str, command_line: int) -> Problem:
    origin = Origin(flag=name, file=value.origin.file, line=line, column=value.origin.column)
    text = (
        f"{name}={value.text}"
        if name.startswith("--") and value.text
        else f"{name} {value.text}".strip()
    )
    return Problem(
        kind="late",
        message=f"#SBATCH {text} stands below the first command, where sbatch does not read it",
        observed=f"line {command_line} is a command: {command.strip()[:60]}",
        correction=f"#SBATCH {text}   # above line {command_line}",
        origin=origin,
    )
