"""What `allaboard diagnose --bundle` asks and says while it packs a bundle for a bug report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.cli.standard_output import print_error
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.facts import HostLook


def pack_confirmed_bundle(
    bundle: Path,
    answers: dict[str, str],
    paths: list[Path],
    looks: tuple[HostLook, ...],
    is_confirmed: bool,
) -> None:
    """Pack the bundle, after a question if it holds logs. Raises UsageError, also without an answer."""
    from allaboard.diagnosis.logs.bundle import pack_bundle

    if paths and not is_confirmed and not _confirm_logs(paths):
        print_error("allaboard: no bundle was packed")
        return
    try:
        packed = pack_bundle(bundle, answers, paths, looks)
    except OSError as error:
        raise UsageError(f"--bundle {bundle}: {(error.strerror or str(error)).lower()}") from None
    print_error(
        f"allaboard: packed {len(packed.contents)} files into {bundle}; look through it before you\n"
        f"  send it: tar -tzf {shlex.quote(str(bundle))}"
    )
    for line in packed.removed_lines():
        print_error(f"  {line}")


def _confirm_logs(paths: list[Path]) -> bool:
    """Ask on the terminal whether these paths may be packed.

    Raises UsageError if there is no terminal: a script says it with --yes.
    """
    names = ", ".join(map(str, paths))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"--bundle packs the logs in {names}, and there is no terminal to ask whether it may; "
            "look through them, then add --yes"
        )
    print_error(
        f"allaboard: the bundle will hold the logs in {names}. Secrets are removed where a name or a\n"
        "  form gives them away; what your program printed otherwise stays."
    )
    sys.stderr.write("Pack them? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
