"""The exit codes of ``--exit-codes scheduler``: a contract with whatever starts the job again.

Where the numbers come from. Taken by others are: 0 to 2 and 126 to 165 (the shell and 128 + a signal's
number), 3 and 4 (allaboard's own), 64 to 78 (sysexits.h), 99 and 100 (Grid Engine: start again, error state),
123 to 125 (xargs, timeout, env, container engines), 200 to 243 (systemd) and 255 (ssh, srun). Of the rest,
Kubeflow's ``restartPolicy: ExitCode`` starts a replica again from 128 on and not below, so what may be tried
again is above that, and what may not is below.
"""

from __future__ import annotations

from allaboard.facts import Outcome
from allaboard.facts.outcome import Retry, RetryAdvice

SCHEDULER_EXIT_CODES = {Retry.HERE: 180, Retry.ELSEWHERE: 181, Retry.RESOURCES: 80, Retry.NEVER: 81}
"""Exit code of each verdict."""


def scheduler_exit_code(outcome: Outcome, advice: RetryAdvice | None, plain_code: int) -> int:
    """Return the exit code of a run with ``--exit-codes scheduler``.

    ``plain_code`` is what the run would exit with otherwise. It is kept for a run that completed, was
    interrupted (128 + the signal) or could not be started as it was typed (2).
    """
    if advice is None or outcome in (Outcome.COMPLETED, Outcome.USAGE, Outcome.INTERRUPTED):
        return plain_code
    return SCHEDULER_EXIT_CODES[advice.verdict]
