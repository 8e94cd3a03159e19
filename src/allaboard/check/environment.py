"""The environment of a process as material for resolvers. It is read without what files need, which takes
longer to load."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import Material


def environment_material(variables: Mapping[str, str]) -> Material:
    """Return the environment of a process as material for the sources."""
    return Material.from_environment(variables)
