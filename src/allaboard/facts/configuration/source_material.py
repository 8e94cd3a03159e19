"""What a source of configuration is given to read: variables, commands, a parsed tree, or plain text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts.configuration.cluster import Origin, Value
from allaboard.facts.configuration.manifest import ManifestFacts
from allaboard.facts.configuration.tree import Node

OPAQUE = "\0"
"""Stands in a command's word for the part that only a run could tell."""


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """One environment or one file, as far as it could be read without running anything."""

    kind: str
    """environment, json, manifest, accelerate, hostfile, shell, python or url."""
    file: str = ""
    """The file's name; "" for this process's environment."""
    variables: Mapping[str, Value] = {}
    """Environment variables with literal values."""
    opaque: frozenset[str] = frozenset()
    """Variables that are set to something that only a run could tell (``$(hostname)``)."""
    partly: Mapping[str, str] = {}
    """Variables whose value is known in part; OPAQUE stands for what is not known."""
    commands: tuple[tuple[Value, ...], ...] = ()
    """Simple commands of a script as words; OPAQUE stands for what is not literal."""
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    """Keyword arguments with literal values of the framework's init calls in a script."""
    tree: Node | None = None
    """The parsed JSON."""
    manifests: ManifestFacts | None = None
    """Workloads and services of Kubernetes documents."""
    text: str = ""
    """The whole text."""
    named_files: Mapping[str, str] = {}
    """Texts of files that variables name (PBS_NODEFILE), by the variable; empty if they were not read."""

    @classmethod
    def from_environment(
        cls, variables: Mapping[str, str], named_files: Mapping[str, str] | None = None
    ) -> Material:
        """Return the environment of a process as material; each value's origin is its variable."""
        return cls(
            kind="environment",
            variables={n: Value(text, Origin(variable=n)) for n, text in variables.items()},
            named_files=named_files or {},
        )
