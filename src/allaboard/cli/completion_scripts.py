"""Completion scripts for bash, zsh and fish, generated from the parsers.

A script holds everything that it completes, so completing starts no Python. The words behind the script of
`allaboard run`, or behind ``--``, are the job's own: there files are completed.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from allaboard.cli.commands import COMMANDS
from allaboard.options.command_parser import CommandParser, build_parser

TOP_LEVEL_OPTIONS = {
    "-h": "show this help and exit",
    "--help": "show this help and exit",
    "--version": "print the version and exit",
}


class CompletedOption(NamedTuple):
    """An option, as a shell completes it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...]
    """The values that it takes; () if any."""
    completes_files: bool


class CompletedCommand(NamedTuple):
    """A command, as a shell completes it."""

    name: str
    summary: str
    options: list[CompletedOption]
    argument_values: tuple[str, ...]
    """The values of its arguments; () if any."""
    completes_files: bool
    starts_script: bool
    """True if its first argument ends the options."""


def completion_script(shell: str) -> str:
    """Return the script for bash, zsh or fish."""
    write: dict[str, Callable[[list[CompletedCommand]], str]] = {
        "bash": bash_script,
        "zsh": zsh_script,
        "fish": fish_script,
    }
    return write[shell]([describe_command(name) for name in COMMANDS])


def describe_command(name: str) -> CompletedCommand:
    """Return what a shell completes for this command."""
    module = importlib.import_module(f"allaboard.cli.{name}")
    parser = build_parser(name, module.add_arguments)
    options: list[CompletedOption] = []
    argument_values: tuple[str, ...] = ()
    completes_files = name == "run"
    for action in parser.declared_arguments():
        if action.help == argparse.SUPPRESS:
            continue
        described = describe_option(parser, action)
        if action.option_strings:
            options.append(described)
        else:
            argument_values, completes_files = described.values, described.completes_files
    return CompletedCommand(
        name, COMMANDS[name], options, argument_values, completes_files, name == "run"
    )


def describe_option(parser: CommandParser, action: argparse.Action) -> CompletedOption:
    """Return what a shell completes for an option, or for a positional argument."""
    completion = parser.value_completions.get(action.dest)
    values = tuple(completion()) if callable(completion) else tuple(action.choices or ())
    return CompletedOption(
        names=tuple(action.option_strings),
        help=first_clause(action.help or ""),
        takes_value=action.nargs not in (0, "?"),  # whose value is optional, the script may follow
        values=values,
        completes_files=completion == "file" or action.type is Path,
    )


def first_clause(help_text: str) -> str:
    """Return the beginning of an option's help, as a menu shows it."""
    return re.split(r"; |\. | \(", help_text)[0].replace("%%", "%")


def bash_script(commands: list[CompletedCommand]) -> str:
    """Return the script for bash 4 or newer."""
    cases = "\n".join(_bash_command(command) for command in commands)
    value_cases = "\n".join(line for command in commands for line in _bash_values(command))
    first_words = " ".join([*(c.name for c in commands), *TOP_LEVEL_OPTIONS])
    return f"""\
# bash completion for allaboard: eval "$(allaboard completion bash)"
_allaboard_words() {{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}}
_allaboard_files() {{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}}
_allaboard() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} index
    local options="" flags="" ends_options="" words="" files="" script=""
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _allaboard_words {shlex.quote(first_words)}
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    *)
        return
        ;;
    esac
    if [[ -n $ends_options ]]; then
        for ((index = 2; index < COMP_CWORD; index++)); do
            case ${{COMP_WORDS[index]}} in
            --) script=yes ;;
            -m*) script=yes ;;
            -n?*) ;;
            -*) [[ " $flags " == *" ${{COMP_WORDS[index]}} "* ]] || ((index++))
                [[ ${{COMP_WORDS[index]}} == = ]] && ((index++)) ;;
            *) script=yes ;;
            esac
            if [[ -n $script ]]; then
                ((index < COMP_CWORD)) || script=""
                break
            fi
        done
    fi
    if [[ -n $script ]]; then
        _allaboard_files
        return
    fi
    # "--format=json" comes as three words.
    if [[ $cur == = ]]; then
        cur=""
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case "${{COMP_WORDS[1]}} $prev" in
{value_cases}
    esac
    if [[ $cur == -* ]]; then
        _allaboard_words "$options"
    elif [[ -n $words ]]; then
        _allaboard_words "$words"
    elif [[ -n $files ]]; then
        _allaboard_files
    fi
}}
complete -F _allaboard allaboard
"""


def _bash_command(command: CompletedCommand) -> str:
    """Return the branch that sets what the command completes."""
    names = [name for option in command.options for name in option.names]
    flags = [n for option in command.options if not option.takes_value for n in option.names]
    lines = [f"    {command.name})", f"        options={shlex.quote(' '.join(names))}"]
    if command.starts_script:
        lines += [f"        flags={shlex.quote(' '.join(flags))}", "        ends_options=yes"]
    if command.argument_values:
        lines.append(f"        words={shlex.quote(' '.join(command.argument_values))}")
    if command.completes_files:
        lines.append("        files=yes")
    return "\n".join([*lines, "        ;;"])


def _bash_values(command: CompletedCommand) -> Iterator[str]:
    """Yield the branches that complete the value behind an option."""
    for option in command.options:
        if not option.takes_value:
            continue
        yield f"    {'|'.join(shlex.quote(f'{command.name} {name}') for name in option.names)})"
        if option.values:
            yield f"        _allaboard_words {shlex.quote(' '.join(option.values))}"
        elif option.completes_files:
            yield "        _allaboard_files"
        yield "        return"
        yield "        ;;"


def zsh_script(commands: list[CompletedCommand]) -> str:
    """Return the script for zsh; compinit must have run."""
    listed = "\n".join(f"        {shlex.quote(f'{c.name}:{c.summary}')}" for c in commands)
    cases = "\n".join(_zsh_case(command) for command in commands)
    return f"""\
#compdef allaboard
# zsh completion for allaboard: eval "$(allaboard completion zsh)"
_allaboard() {{
    local context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=(
{listed}
    )
    _arguments -C \\
        '(- *)'{{-h,--help}}'[show this help and exit]' \\
        '(- *)--version[print the version and exit]' \\
        '1: :->command' \\
        '*:: :->arguments'
    case $state in
    command)
        _describe -t commands 'allaboard command' commands
        ;;
    arguments)
        case $words[1] in
{cases}
        esac
        ;;
    esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _allaboard "$@"
else
    compdef _allaboard allaboard
fi
"""


def _zsh_case(command: CompletedCommand) -> str:
    specifications = []
    for option in command.options:
        value = ""
        if option.takes_value:
            action = f"({' '.join(option.values)})" if option.values else ""
            value = f":value:{'_files' if option.completes_files else action}"
        text = _zsh_text(option.help)
        excluded_names = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
        for name in option.names:
            # Both "--format json" and "--format=json", both "-n 4" and "-n4".
            attached = ("=" if name.startswith("--") else "+") if option.takes_value else ""
            specifications.append(shlex.quote(f"{excluded_names}{name}{attached}[{text}]{value}"))
    if command.starts_script:
        specifications += [shlex.quote("1:script:_files"), shlex.quote("*::arguments:_files")]
    elif command.argument_values:
        specifications.append(shlex.quote(f"1:value:({' '.join(command.argument_values)})"))
    elif command.completes_files:
        specifications.append(shlex.quote("*:path:_files"))
    body = " \\\n                ".join(["_arguments -s", *specifications])
    return f"        {command.name})\n            {body}\n            ;;"


def _zsh_text(text: str) -> str:
    """Return the text as the description of an option in a specification of _arguments."""
    for character in "\\[]:":
        text = text.replace(character, f"\\{character}")
    return text


def fish_script(commands: list[CompletedCommand]) -> str:
    """Return the script for fish."""
    lines = ["# fish completion for allaboard: allaboard completion fish | source"]
    lines.append("complete -c allaboard -f")
    top_level = "complete -c allaboard -n __fish_use_subcommand"
    lines += [f"{top_level} -a {c.name} -d {_fish_quote(c.summary)}" for c in commands]
    lines.append(f"{top_level} -s h -l help -d 'show this help and exit'")
    lines.append(f"{top_level} -l version -d 'print the version and exit'")
    for command in commands:
        start = f"complete -c allaboard -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            line = f"{start} {names} -d {_fish_quote(option.help)}"
            if option.takes_value:
                line += " -r -F" if option.completes_files else " -x"
            if option.values:
                line += f" -a {_fish_quote(' '.join(option.values))}"
            lines.append(line)
        if command.argument_values:
            lines.append(f"{start} -a {_fish_quote(' '.join(command.argument_values))}")
        elif command.completes_files:
            lines.append(f"{start} -F")
    return "\n".join(lines) + "\n"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
