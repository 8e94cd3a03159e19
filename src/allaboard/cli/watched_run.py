"""The run that `allaboard watch` was given, and the feed of it."""

from __future__ import annotations

import argparse

from allaboard.cluster.transport.tls import TlsFiles
from allaboard.faces.watch.run_folders import NoSuchRun, WatchTarget, find_target
from allaboard.faces.watch.run_source import RunSource
from allaboard.options.option_values import read_secret, read_tls_files
from allaboard.options.run_folder import working_folder
from allaboard.options.usage_error import UsageError


def find_watched_run(options: argparse.Namespace) -> WatchTarget:
    """Return the run that is to be watched. Raises UsageError if there is none."""
    target = find_target(options.run, working_folder())
    if isinstance(target, NoSuchRun):
        raise UsageError(target.reason)
    return target


def open_run_source(options: argparse.Namespace) -> RunSource:
    """Return what reads the messages of the run; the secret and the certificates are for a port alone.

    Raises UsageError if there is no run, or if these cannot be read.
    """
    target = find_watched_run(options)
    return open_target(target, options, read_tls_files(options) if target.address else None)


def open_target(
    target: WatchTarget, options: argparse.Namespace, tls: TlsFiles | None
) -> RunSource:
    """Return what reads the messages of this run. Raises UsageError if the secret cannot be read."""
    is_port = target.address is not None
    secret = read_secret(options.secret_file) if is_port else b""
    return RunSource(target, secret, tls if is_port else None)
