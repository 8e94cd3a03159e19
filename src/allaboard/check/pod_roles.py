"""One role of a manifest as material for the sources: what each of its pods is given."""

from __future__ import annotations

from allaboard.facts import ManifestFacts, Material, Role, Workload


def role_material(workload: Workload, role: Role, file: str) -> Material:
    """Return the literal variables and commands of the role's training container."""
    variables, opaque = dict(role.env), set(role.computed)
    for value in role.command:
        if " " in value.text.strip():
            from allaboard.formats.shell.script import read_shell

            script = read_shell(value.text, file)
            opaque |= script.opaque | script.variables.keys()
    return Material(
        kind="manifest",
        file=file,
        variables=variables,
        opaque=frozenset(opaque),
        commands=role.commands,
        manifests=ManifestFacts(workloads=(workload,)),
    )
