"""A file's text as material for the sources: one material per file, or one per role of a manifest."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from allaboard.check.file_types import kind_of
from allaboard.check.python_material import indentation_of_block, read_notebook, read_python_script
from allaboard.check.read_file import Source
from allaboard.check.size_limits import size_problem
from allaboard.facts import FormatError, ManifestFacts, Material, Origin, Problem, ScriptFacts

if TYPE_CHECKING:
    from allaboard.check.given_modules import GivenModules
    from allaboard.formats.shell.broken_continuations import TornLine
    from allaboard.formats.shell.script import Script

_ACCELERATE = frozenset(["distributed_type", "num_machines", "main_process_ip"])
"""Keys that identify accelerate's config file."""
_AS_A_PIECE = "is read as a piece of a script: as a whole it "
_MAX_INNER_SCRIPTS = 256
"""Shell scripts inside one file that are examined."""


@dataclass
class Parsed:
    """The result of reading one file."""

    materials: list[tuple[str, Material]] = field(default_factory=list)
    """What the sources read, by subject."""
    members: list[tuple[str, Material]] = field(default_factory=list)
    """Processes that the file starts side by side, by subject."""
    manifests: ManifestFacts | None = None
    python_scripts: list[ScriptFacts] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    shell_script: Script | None = None
    """The file itself as a shell script, with the order of its steps; None for other files and templates."""
    inner_scripts: list[Script] = field(default_factory=list)
    """Shell scripts inside the file, as in a ConfigMap or after ``bash -c``."""
    text: str = ""
    is_transcript: bool = False
    """True if its commands stand behind prompts: they may be of several terminals."""
    is_mended: bool = False
    """True if the file is a Python script that does not parse, and what could be mended of it was read."""
    modules: GivenModules | None = None
    """The Python files given together, whose constants this one may import; None if there are no others."""


def parse_source(source: Source, modules: GivenModules | None = None) -> Parsed:
    """Return everything that can be read of one file, with what could not be."""
    parsed = Parsed(modules=modules)
    if source.problem is not None:
        parsed.problems.append(source.problem)
        return parsed
    kind = kind_of(source.name, source.text)
    if too_large := size_problem(source, kind):
        parsed.problems.append(too_large)
        return parsed
    reader = _READERS.get(kind)
    if reader is None:
        problem_text = (
            "is empty" if not source.text.strip() else "is no kind of configuration known here"
        )
        parsed.problems.append(_problem(source.name, 1, 1, problem_text, source.text.strip()[:40]))
        return parsed
    try:
        reader(source, parsed)
    except FormatError as error:
        problem = _problem(source.name, error.line, error.column, error.reason, error.near)
        if error.correction:
            problem = msgspec.structs.replace(problem, correction=error.correction)
        parsed.problems.append(problem)
    return parsed


def may_be_for_training(source: Source) -> bool:
    """Return False for JSON that holds neither a TF_CONFIG nor a manifest, as most JSON in a folder does."""
    if kind_of(source.name, source.text) != "json":
        return True
    if not any(key in source.text for key in ('"cluster"', '"apiVersion"', "'cluster'")):
        return False
    from allaboard.formats.json_nodes import read_json

    if size_problem(source, "json"):
        return True
    try:
        keys = read_json(source.text).items.keys()
    except FormatError:
        return True  # reading it will say why
    # A dashboard or a log may have the word somewhere inside.
    return bool(keys & {"cluster", "task", "apiVersion"})


def unjudged_reason(source: Source, parsed: Parsed) -> str:
    """Return why nothing could be read of a file that the user did not name; "" if something was, or if the
    file is meant for training, so that its error is a finding."""
    workloads = parsed.manifests.workloads if parsed.manifests is not None else ()
    was_read = parsed.materials or parsed.members or workloads
    if (was_read and not parsed.is_mended) or not parsed.problems:
        return ""
    kind = kind_of(source.name, source.text)
    is_tf_config = kind == "json" and '"cluster"' in source.text
    is_manifest = kind == "manifest" and "apiVersion:" in source.text and "{{" not in source.text
    message = parsed.problems[0].message.removeprefix(_AS_A_PIECE)
    return "" if is_tf_config or is_manifest else message


def _problem(file: str, line: int, column: int, problem_text: str, observed: str = "") -> Problem:
    return Problem(
        kind="unreadable",
        message=problem_text,
        observed=observed or problem_text,
        correction=f"look at {file}:{line}:{column}" if line else "split it into smaller files",
        origin=Origin(file=file, line=line, column=column),
    )


def _parse_json(source: Source, parsed: Parsed) -> None:
    from allaboard.configuration.spec.unstructured_values import not_json
    from allaboard.formats.json_nodes import read_json

    try:
        tree = read_json(source.text)
    except FormatError as error:
        origin = Origin(file=source.name)
        parsed.problems.append(not_json(error, source.text[:64_000], origin))
        return
    if "apiVersion" in tree.items and "kind" in tree.items:
        if too_large := size_problem(source, "manifest"):
            parsed.problems.append(too_large)
            return
        _parse_manifest(source, parsed)
        return
    if source.has_byte_order_mark and {"cluster", "task"} & tree.items.keys():
        parsed.problems.append(_byte_order_mark_problem(source.name))
    material = Material(kind="json", file=source.name, tree=tree, text=source.text)
    parsed.materials.append((source.name, material))


def _byte_order_mark_problem(file: str) -> Problem:
    """Return the problem of a byte order mark. Editors on Windows write one, and json.loads refuses a text
    with it."""
    return Problem(
        kind="tf_config.json",
        message="begins with a byte order mark, which json.loads refuses",
        observed="EF BB BF",
        correction=f"sed -i '1s/^\\xEF\\xBB\\xBF//' {shlex.quote(file)}",
        origin=Origin(file=file, line=1, column=1),
    )


def _parse_manifest(source: Source, parsed: Parsed) -> None:
    from allaboard.check.compose_services import compose_problems
    from allaboard.check.pod_roles import role_material
    from allaboard.formats.manifests.compose import is_compose, training_services
    from allaboard.formats.manifests.embedded_scripts import embedded_scripts
    from allaboard.formats.manifests.kubernetes import read_manifests
    from allaboard.formats.yaml_nodes import read_yaml

    documents = []
    try:
        for document in read_yaml(source.text):
            documents.append(document)  # noqa: PERF402 - keeps those before the error
    except FormatError as error:
        if "{{" not in source.text:
            raise
        problem_text = "is a template: it becomes YAML when it is rendered"
        render = "helm template CHART | allaboard check -"
        preceding = source.text[: source.text.index("{{")]
        line, column = preceding.count("\n") + 1, len(preceding) - preceding.rfind("\n")
        raise FormatError(problem_text, line, column, error.near, render) from None
    finally:
        for tree in documents:
            if _ACCELERATE & tree.items.keys() and "kind" not in tree.items:
                material = Material(kind="accelerate", file=source.name, tree=tree)
                parsed.materials.append((source.name, material))
            elif is_compose(tree):
                members = list(training_services(tree, source.name))
                parsed.members += members
                named = {subject.rpartition(" ")[2]: material for subject, material in members}
                networks = tree.node_at("networks")
                may_join = networks is not None and "external" in source.text
                parsed.problems += compose_problems(tree.node_at("services"), named, may_join)
        parsed.manifests = read_manifests(documents, source.name, "$" in source.text)
        _add_inner_scripts(
            embedded_scripts(documents, parsed.manifests, source.name), source, parsed
        )
        for workload in parsed.manifests.workloads:
            for role in workload.roles:
                name = f"{source.name} {workload.kind}/{workload.name} {role.name}".rstrip()
                parsed.materials.append((name, role_material(workload, role, source.name)))


def _add_inner_scripts(scripts: Iterable[Script], source: Source, parsed: Parsed) -> None:
    """Add the shell scripts inside the file, up to the number that anybody would read."""
    from allaboard.check.shell_pitfalls import torn_commands

    parsed.text = source.text
    lines = source.text.split("\n")
    for script in itertools.islice(scripts, _MAX_INNER_SCRIPTS):
        parsed.inner_scripts.append(script)
        # What a variable brought, or an escape, is not torn where it stands.
        script.torn_lines = [t for t in script.torn_lines if _is_torn_in_file(lines, t[1])]
        parsed.problems += torn_commands(script, source.name)


def _is_torn_in_file(lines: list[str], torn: TornLine) -> bool:
    """Return True if the file itself has what tears the command, character for character."""
    line = lines[torn.line - 1] if 0 < torn.line <= len(lines) else ""
    remainder = line[torn.column - 1 :]
    return (
        remainder.startswith({"blank": "\\", "remark": "\\", "comment": "#"}[torn.reason])
        if torn.reason != "end"
        else not remainder
    )


def _parse_shell(source: Source, parsed: Parsed) -> None:
    from allaboard.check.concurrent_members import concurrent_members
    from allaboard.check.misspelt_variables import misspelt_variables
    from allaboard.check.shell_pitfalls import (
        blank_templates,
        ended_remote_commands,
        late_directives,
        pasted_commands,
        small_letter_directives,
        torn_commands,
        unexpanded_directives,
    )
    from allaboard.formats.shell.nested import read_nested_scripts
    from allaboard.formats.shell.prompts import has_prompts, without_prompts
    from allaboard.formats.shell.sbatch_directives import keep_training_component
    from allaboard.formats.shell.script import read_shell, with_inner_commands

    if source.windows_line_end:
        parsed.problems.append(
            Problem(
                kind="unreadable",
                message="has Windows line ends: in a shell every value would end in a carriage return",
                observed="\\r\\n",
                correction=f"sed -i 's/\\r$//' {shlex.quote(source.name)}",
                origin=Origin(
                    file=source.name,
                    line=source.windows_line_end[0],
                    column=source.windows_line_end[1],
                ),
            )
        )
    parsed.is_transcript = has_prompts(source.text)
    source = replace(source, text=without_prompts(source.text))
    script = read_shell(blank_templates(source.text), source.name)
    parsed.problems += [
        *torn_commands(script, source.name),
        *ended_remote_commands(source.text, source.name),
        *late_directives(source.text, source.name),
        *pasted_commands(source.text, source.name),
        *small_letter_directives(source.text, source.name),
        *unexpanded_directives(source.text, source.name),
        *misspelt_variables(source.text, source.name),
    ]
    material = Material(
        kind="shell",
        file=source.name,
        variables=script.variables,
        opaque=frozenset(script.opaque),
        partly=script.lasting.partly,
        commands=tuple(with_inner_commands(script.commands, source.name)),
        text=keep_training_component(source.text),
    )
    parsed.materials.append((source.name, material))
    if "{%" not in source.text:  # of a template's branches some are left out
        parsed.members += concurrent_members(script, source.name)
        parsed.shell_script = script
        _add_inner_scripts(read_nested_scripts(script.commands, source.name), source, parsed)


def _parse_python(source: Source, parsed: Parsed) -> None:
    is_notebook = kind_of(source.name, source.text) == "notebook"
    try:
        read = (read_notebook if is_notebook else read_python_script)(source, parsed.modules)
    except FormatError as error:
        from allaboard.formats.python.pieces.fragments import mend_fragment

        fragment = None if is_notebook else mend_fragment(source.text)
        if fragment is None:
            raise
        mended = replace(source, text=fragment.text)
        read = read_python_script(mended, parsed.modules, is_piece=True)
        parsed.is_mended = True
        problem = _problem(source.name, error.line, error.column, error.reason, error.near)
        parsed.problems.append(_as_piece(problem) if fragment.is_mere_paste else problem)
    else:
        if not is_notebook and indentation_of_block(source.text):
            parsed.problems.append(_piece_problem(source))
    for material, script in read:
        parsed.materials.append((source.name, material))
        parsed.python_scripts.append(script)


def _piece_problem(source: Source) -> Problem:
    lines = source.text.split("\n")
    number = next(n for n, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#")
    near = lines[number - 1].strip()[:60]
    return _as_piece(_problem(source.name, number, 1, "begins with an indented line", near))


def _as_piece(problem: Problem) -> Problem:
    return msgspec.structs.replace(
        problem, kind="unreadable.piece", message=f"{_AS_A_PIECE}{problem.message}"
    )


def _parse_plain(source: Source, parsed: Parsed) -> None:
    kind = kind_of(source.name, source.text)
    parsed.materials.append((source.name, Material(kind=kind, file=source.name, text=source.text)))


_READERS = {
    "json": _parse_json,
    "manifest": _parse_manifest,
    "shell": _parse_shell,
    "python": _parse_python,
    "notebook": _parse_python,
    "hostfile": _parse_plain,
    "url": _parse_plain,
}
