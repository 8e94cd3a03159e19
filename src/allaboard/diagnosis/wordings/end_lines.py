"""The last lines of native code, shells, launchers and containers, as patterns."""

from __future__ import annotations

import re

SIGNAL_WORDS = {
    "Segmentation fault": "SIGSEGV",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
    "Aborted": "SIGABRT",
    "Killed": "SIGKILL",
}
ABORT_LINES = (
    # A fatal record of glog and abseil, of TensorFlow's logger, and a check without a record.
    re.compile(
        r"(?:^|\s)F\d{4} \d\d:\d\d:\d\d[^\n]*?\] (?P<what>\S.*)"
        r"|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*: F [^\n]*?\] ?(?P<what2>\S.*)"
        r"|(?P<what3>\bCheck failed: .*)"
        r"|terminate called after throwing an instance of '(?P<what4>[^']*)'"
        r"|Fatal Python error: (?P<what5>.*)"
        r"|(?P<what6>(?:double free or corruption|free\(\): invalid|malloc\(\)|corrupted size vs"
        r"|munmap_chunk\(\)|realloc\(\)|malloc_consolidate\(\)|corrupted double-linked list"
        r"|\*\*\* stack smashing detected).*)"
        r"|(?P<what7>\S+: [^\n]*Assertion `[^\n]*' failed\..*)"
        # MPICH before 3.3, without the rank; the frames of its own stack follow. Ray's handler of C++'s.
        r"|^panic: (?P<what10>\S.*)"  # Go
        r"|^(?P<what8>Fatal error in (?:internal_|P?MPI_).*)"
        r"|Unhandled exception: (?P<what9>\S{1,200}\. what\(\): .*)"
    ),
)
MPI_ABORT_LINE = re.compile(r"\bAbort\(\d+\)[^\n]{0,60}: Fatal error in ")
"""What MPICH writes with the rank, which another reader reads with the stack below it."""
MPI_FRAME = re.compile(r"^(?:\w+|\(unknown\))\(\d*\)\.*: ?(?P<why>.*)")
MPI_HELP_RULE = re.compile(r"^-{50,}$")
MPI_HELP_FATAL = re.compile(
    r"\bjob (?:is now going to|will now) abort|therefore cannot$"
    r"|^This is a fatal error|will (?:therefore )?terminate the job|^(?:MPI|PML) add procs failed"
)
"""Lines in a text between two rules of Open MPI that tell that the job ends of what the text reports."""
LESS_THAN_FATAL = re.compile(
    r"^[IWE]\d{4} \d\d:\d\d:\d\d|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*: [IWE] "
)
"""A record of glog, abseil or TensorFlow's logger after which its program goes on."""
SIGNAL_LINE = re.compile(
    r"^(?:\S+: line \d+: +\d+ |\S{0,60}\s)?(?P<name>Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception|Aborted|Killed)(?: *\(core dumped\))?(?:\s{2,}\S.*)?\s*$"
    r"|^(?:\[[\w.-]+:\d+\] Signal: |(?:\[\d+\] )?signal (?:\(\d+[\d.]*\)|\d+ \(\d+\)): )"
    r"(?P<name2>Segmentation fault|Bus error|Illegal instruction|Aborted)\b"
    # The failure handlers of absl (libtpu, Ray) and glog (Paddle).
    r"|^\s{0,4}(?:\[SignalInfo: )?\*\*\* (?P<code>SIG[A-Z]+) (?:\(@|received (?:by PID|at time))[^\n]*"
)
OVERWRITTEN_LINE = re.compile(
    r"(?P<name>Killed|Segmentation fault)(?!er\b|s\b|Worker\b)(?=[\w%|/\[])"
)
"""The shell's word over the beginning of a progress line that ended without a new line."""
EXIT_CODE = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: (?:exit )?(?:code|status))|exit_?code|returned)[ :=]{1,3}\(?"
    r"(?P<code>13[24-9])\b",
    re.IGNORECASE,
)
LAUNCHER_LINES = (
    re.compile(r"There are not enough slots available in the system"),
    re.compile(r"^ssh: (?:connect to host|Could not resolve hostname) \S+"),
    re.compile(r"^Host key verification failed|Permission denied \(publickey"),
    re.compile(
        r"(?:mpirun|prterun|orterun|mpiexec) (?:was unable|could not|does not)|^(?:ORTE|PRTE|An ORTE"
        r"|An PRTE) [^\n]*(?:lost communication|unexpectedly failed|was unable)"
    ),
    re.compile(
        r"^[\w.-]+: error: (?:unrecognized|the following arguments|argument |ambiguous option"
        r"|invalid choice|one of the arguments|expected )"
    ),
    re.compile(
        r"^(?:/\S*/)?(?:ba|z|da)?sh: (?:line \d+: )?[^\n]*: (?:command not found|not found|No such file"
        r"|Permission denied)|^(?:/\S*/)?env: |^(?:/\S*/)?python[\d.]*: (?:No module|can't "
        r"open|Error while)"
    ),
    re.compile(
        r"^(?:srun|sbatch|salloc): (?:fatal: |error: (?:Unable|Invalid|Job|Requested"
        r"|Application launch|Batch job submission|task \d+ launch))"
    ),
    re.compile(
        r"\b(?:OOMKilled|CrashLoopBackOff|ErrImagePull|ImagePullBackOff)\b|OCI runtime \w+ failed"
    ),
    re.compile(r"^command terminated with (?:non-zero )?exit code [1-9]"),
    re.compile(
        r"^(?:\[\w+\]: ?)?(?:torch\.[\w.]+\.)?(?:ChildFailedError|SignalException|ProcessExitedException)\b"
    ),
)
ABOUT_FAILURE = re.compile(
    r"\berrors?\b|\bfail|\bexit(?:ed|ing)?\b|\bstatus\b|\bcommand\b|\babort|\bterminat|\bkill|\bcould not\b"
    r"|\bunable\b|\bcannot\b",
    re.IGNORECASE,
)
"""Words of what a launcher or a shell writes after an error about it."""
IMAGE_PULLED = re.compile(r"Successfully pulled image|Started container")
"""Events of a pod after which an image that could not be pulled is there."""
EXCEPTION_LINE = re.compile(
    r"^(?:\[[\w:/. -]{1,60}\]:? ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:\([\w.]+\))?"
    r"(?: \(see above for traceback\))?(?:: .*)?\s*$"
    r"|^Exception: \S.*$"
    r"|^(?:[a-z_]\w*\.)+[A-Z]\w+: \S.*$"
    r"|^[A-Z]\w*(?:Killed|Died|Dead|Lost|Expired|TimedOut|Timeout|Aborted|Refused|Denied)\w*: \S.*$"
    r"|^Exception in (?:thread|device|worker|process|callback)\b[^\n:]{0,60}[:=\" ]{1,3}\S.*$"
)
"""An exception's last line; its traceback may be missing."""
