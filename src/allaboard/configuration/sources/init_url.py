"""Init URLs of torch.distributed: ``tcp://host:port``, ``file:///path``, and the arguments beside.

The forms are those of torch.distributed.init_process_group's ``init_method``; ``?rank=`` and
``?world_size=`` may stand in the URL (torch/distributed/rendezvous.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, Origin, PartialSpec, Problem, Value, address
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_VARIABLES = SOURCE_VARIABLES["init_url"].structured
"""Names under which launch scripts hand the URL to their programs; torch itself reads none."""

_FIELDS = {"rank": "rank", "world_size": "world_size", "backend": "backend"}


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the rendezvous of each init URL, from a variable or the call of a script."""
    if material.kind == "url":
        url = Value(material.text.strip(), Origin(file=material.file, line=1, column=1))
        yield _spec(url, {})
    for variable in _VARIABLES:
        named = material.variables.get(variable)
        if named is not None and "://" in named.text and not named.text.startswith("env://"):
            yield msgspec.structs.replace(_spec(named, {}), layer="processes")
    for name, arguments in material.calls:
        if name != "torch.distributed.init_process_group":
            continue
        url_argument = arguments.get("init_method")
        values = {f: arguments[a] for f, a in _FIELDS.items() if a in arguments}
        if url_argument is not None and url_argument.text != "env://":
            yield _spec(url_argument, values)
        elif values:
            yield PartialSpec(source="init_url", layer="call", framework="pytorch", values=values)


def _spec(url: Value, values: Mapping[str, Value]) -> PartialSpec:
    fields = dict(values)
    problem = _problem(url)
    scheme, _, remainder = url.text.partition("://")
    body, _, query = remainder.partition("?")
    for pair in query.split("&"):
        name, equals, text = pair.partition("=")
        if equals and name in ("rank", "world_size"):
            fields[name] = Value(text, url.origin)
    fields["init_url"] = url
    if scheme == "tcp" and problem is None:
        parts = address.parse_address(body)
        fields["master_addr"] = Value(parts.host, url.origin)
        fields["master_port"] = Value(parts.port, url.origin)
    return PartialSpec(
        source="init_url",
        layer="call",
        framework="pytorch",
        values=fields,
        problems=(problem,) if problem else (),
    )


def _problem(url: Value) -> Problem | None:
    """Return what torch would stumble over, or take for something else without a word; None if nothing is
    wrong."""
    text = url.text.strip()
    scheme, marks, remainder = text.partition("://")
    body = remainder.partition("?")[0]
    message = right = ""
    if not marks:
        message, right = "has no scheme", _with_scheme(text)
    elif scheme == "tcp":
        wrong = address.address_fault(body.rstrip("/"), port=29500)
        if wrong is not None:
            message, right = wrong[0], f"tcp://{wrong[1]}"
    elif scheme == "file":
        if not body.startswith("/"):
            host, _, path = body.partition("/")
            message = f"takes {host!r} for a host name, not for a folder: the path is relative"
            right = f"file:///{body.removeprefix('./')}" if path else f"file:///shared/{host}"
        elif body.endswith("/"):
            message, right = "names a folder, not a file", f"file://{body}rendezvous"
    elif scheme not in ("env", "tcp", "file", "xla"):
        message, right = f"has the scheme {scheme}://, which torch does not know", f"tcp://{body}"
    if not message:
        return None
    return Problem(
        kind="init_url", message=message, observed=text, correction=right, origin=url.origin
    )


def _with_scheme(text: str) -> str:
    for scheme in ("tcp", "file", "env"):
        # tcp//host, tcp:/host, tcp:host: the marks are half there.
        if text.startswith((f"{scheme}:", f"{scheme}//")):
            remainder = text.removeprefix(scheme).lstrip(":/")
            return f"{scheme}:///{remainder}" if scheme == "file" else f"{scheme}://{remainder}"
    return f"file://{text}" if text.startswith("/") else f"tcp://{text}"


SOURCE = ConfigurationSource(read=read_material)
