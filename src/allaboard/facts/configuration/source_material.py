"""What a resolver is given to read: variables, commands, a parsed tree, or plain text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts.configuration.cluster import Value
from allaboard.facts.configuration.manifest import ManifestFacts
from allaboard.facts.configuration.tree import Node

OPAQUE = "\0"
"""Stands in a command's word for the part that only a run could tell."""


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """One environment or one file, as far as it could be read without running anything.

    Attributes:
        kind: environment, json, manifest, accelerate, hostfile, shell, python, url.
        file: the file's name, "" for this process's environment.
        variables: environment variables with literal values.
        partly: variables of which only a run could tell all: OPAQUE stands for what is not known.
        opaque: variables that are set to something only a run could tell (``$(hostname)``).
        commands: simple commands of a script as words; OPAQUE stands for what is not literal.
        calls: keyword arguments with literal values of the framework's init calls in a script.
        tree: the parsed JSON.
        manifests: workloads and services of Kubernetes documents.
        text: the whole text.
    """

    kind: str
    file: str = ""
    variables: Mapping[str, Value] = {}
    opaque: frozenset[str] = frozenset()
    partly: Mapping[str, str] = {}
    commands: tuple[tuple[Value, ...], ...] = ()
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    tree: Node | None = None
    manifests: ManifestFacts | None = None
    text: str = ""
