"""The commands of allaboard, and the exit codes that they share."""

from __future__ import annotations

COMMANDS = {
    "run": "Start a training job, watch it, report problems as they happen.",
    "watch": "Look at a run: does it move, who holds it up, since when.",
    "report": "Write one file that shows a colleague what happened in a run.",
    "preflight": "Test the hosts and the network before the job; no script is run.",
    "check": "Check configuration and scripts for what would make training hang.",
    "spec": "Print the cluster that the configuration describes, or convert it.",
    "diagnose": "Find out why a job hangs or has failed, however it was started.",
    "explain": "Explain a finding: what it means, why it matters, and what to do.",
    "rules": "List everything that allaboard can report.",
    "drill": "Put a fault into a small real job, and see whether it is found.",
    "completion": "Print the completion script for bash, zsh or fish.",
}
"""The commands in the order of the help, each with its summary. Each is a module of this folder."""
USAGE_EXIT_CODE = 2
"""Exit code for what cannot be done as it was typed."""
INTERRUPTED_EXIT_CODE = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""
