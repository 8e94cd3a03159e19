"""Targets of `diagnose` that are services of the job, as files that can be read."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from allaboard.options.usage_error import UsageError


@contextlib.contextmanager
def asked_endpoints(targets: Sequence[str]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Ask the services among the targets; the answers last as long as this context.

    Yields the targets, with a folder in place of each service, and by the folder what to show for it.

    Raises:
        UsageError: a service does not answer.
    """
    from allaboard.diagnosis.live.endpoint_answers import EndpointError, is_endpoint, write_answers

    with tempfile.TemporaryDirectory(prefix="allaboard-") as parent:
        named, shown_names = [], {}
        for number, target in enumerate(targets):
            if not is_endpoint(target):
                named.append(target)
                continue
            folder = Path(parent, str(number))
            folder.mkdir()
            sys.stderr.write(
                f"allaboard diagnose: asking {target}; it waits a minute for a rank that is stopped\n"
            )
            try:
                write_answers(target, folder)
            except EndpointError as error:
                raise UsageError(str(error)) from None
            named.append(str(folder))
            shown_names[str(folder)] = target
        yield named, shown_names
