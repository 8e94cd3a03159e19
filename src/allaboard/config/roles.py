"""What one role of a manifest tells each of its pods, as material for the resolvers."""

from __future__ import annotations

from allaboard.facts import ManifestFacts, Material, Origin, Role, Value, Workload


def role_material(workload: Workload, role: Role, file: str) -> Material:
    """The literal variables and commands of the role's training container."""
    commands: list[tuple[Value, ...]] = [role.command] if role.command else []
    variables, opaque = dict(role.env), set(role.computed)
    for word in role.command:
        if " " in word.text.strip():
            from allaboard.formats.shell import read_shell

            script = read_shell(word.text, file)
            line = word.origin.line
            commands += [tuple(_moved(w, line) for w in c) for c in script.commands]
            opaque |= script.opaque | script.variables.keys()
    return Material(
        kind="manifest",
        file=file,
        variables=variables,
        opaque=frozenset(opaque),
        commands=tuple(commands),
        manifests=ManifestFacts(workloads=(workload,)),
    )


def _moved(word: Value, line: int) -> Value:
    """A word of a script inside a manifest, at the line where that script begins."""
    origin = word.origin
    return Value(word.text, Origin(file=origin.file, line=line, flag=origin.flag))
