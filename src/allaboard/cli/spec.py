"""`allaboard spec`: the merged spec of all sources, and conversions between them."""

from __future__ import annotations

import os
from typing import Annotated, NoReturn

import typer

TARGETS = {
    "tf_config": "tf_config",
    "env": "torch_env",
    "hostfile": "hostfile",
    "torchrun": "torchrun",
}
"""What ``--as`` takes, and the source whose text it is."""


UNUSABLE = ("unreadable", "tf_config.json", "tf_config.shape")
"""Problems that leave no spec to convert."""


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|-]...", help="Files, as for `check`. Default: the environment."
        ),
    ] = None,
    target: Annotated[str, typer.Option("--as", help=f"Convert to {', '.join(TARGETS)}.")] = "",
    json: Annotated[bool, typer.Option("--json", help="The spec as JSON.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="First port on a host for which no port is given.")
    ] = 0,
    hosts: Annotated[
        str, typer.Option(metavar="A,B", help="The hosts in order, if no source lists them.")
    ] = "",
) -> None:
    """Print the cluster that the configuration describes, each value with its origin; or convert it."""
    if target and target not in TARGETS:
        _usage(f"--as {target}: it is one of {', '.join(TARGETS)}")
    named = [host.strip() for host in hosts.split(",") if host.strip()]
    from allaboard.check.collect import configuration_sources, from_environment, from_files

    try:
        gathered = from_files(paths) if paths else from_environment(os.environ)
    except OSError as error:
        _usage(f"{error.filename or ''}: {(error.strerror or str(error)).lower()}")
    configs = [c for c in gathered.configs if c.parts]
    unread = [p for c in gathered.configs for p in c.problems if p.kind == "unreadable"]
    if not configs:
        said = f"{unread[0].origin}: {unread[0].said}" if unread else "no configuration found"
        _usage(said)
    if target:
        if wrong := [p for p in configs[0].problems if p.kind in UNUSABLE]:
            _usage(f"cannot be written as {target}: {wrong[0].said} (allaboard check says more)")
        from allaboard.configuration.spec.conversion_choices import completed

        writer = configuration_sources()[TARGETS[target]].write
        assert writer is not None
        try:
            typer.echo(writer(completed(configs[0].spec, port, named, configs[0].parts)), nl=False)
        except ValueError as error:
            _usage(f"cannot be written as {target}: {error}")
        return
    from allaboard.report.spec_table import as_json, table

    for config in configs:
        typer.echo(as_json(config) if json else table(config), nl=False)


def _usage(said: str) -> NoReturn:
    typer.echo(f"allaboard spec: {said}", err=True)
    raise typer.Exit(2)
