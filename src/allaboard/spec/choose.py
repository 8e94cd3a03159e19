"""Choices that a conversion leaves to its user."""

from __future__ import annotations

import msgspec

from allaboard.facts import ClusterSpec, Origin, Value


def with_port(spec: ClusterSpec, port: int) -> ClusterSpec:
    """The spec with ``port`` as the first port on hosts that name none; 0 keeps what is there."""
    if not port:
        return spec
    value = Value(str(port), Origin(flag="--port"))
    return msgspec.structs.replace(spec, values={**spec.values, "master_port": value})
