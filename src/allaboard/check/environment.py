"""The environment of a process as material for the sources.

It is read without the modules that files need, which take longer to load.
"""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.facts import Material


def environment_material(variables: Mapping[str, str]) -> Material:
    """Return the environment of a process as material for the sources."""
    return Material.from_environment(variables)
