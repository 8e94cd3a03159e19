"""`allaboard run`: start the workers, watch them, and end with the job's exit code."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.options.run_options import add_arguments
from allaboard.options.script_boundary import note_late_options, split_at_script

__all__ = ["add_arguments", "main"]


def main(arguments: Sequence[str]) -> int:
    """Start the workers, watch them, and return the exit code. Raises UsageError."""
    from allaboard.options.command_parser import build_parser
    from allaboard.options.secret_options import without_secret_values

    parser = build_parser("run", add_arguments)
    options_end, command_line, is_command = split_at_script(parser, arguments)
    options = parser.parse_checked_arguments(arguments[:options_end])
    options.typed_options = without_secret_values(arguments[:options_end])
    if not is_command:
        note_late_options(parser, arguments, options_end, options.module)
    # Loaded last: the help and what is misspelled need none of it.
    from allaboard.options.run_job import run_job

    return run_job(options, command_line, is_command)
