"""Ends of processes, as docker compose, horovodrun, Lightning, torch's spawn and DataLoader report those that
they started."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.failures.launcher_errors import SUMMARY_ROW, final_launcher_error
from allaboard.analysis.failures.signal_advice import signal_advice
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.end_advice import COLLECT_LOGS
from allaboard.facts import Exhibit, Exit, Glimpse, Heard, Speaker, Testimony
from allaboard.facts.signal_name import SHELL_SIGNAL_OFFSET, VALID_SIGNALS, signal_name

_END = re.compile(
    r"^(?:(?P<host>[a-zA-Z0-9][\w.-]{0,80}[-_](?:\d{1,4}|[a-z0-9]{5})) exited with code (?P<code>\d{1,3})"
    r"(?: \(restarting\))?|Process (?P<rank>\d{1,7}) exit with status code (?P<status>\d{1,3})\."
    r"|#+ Command execution on worker (?P<worker>\d{1,7}) failed with exit status (?P<ssh_status>\d{1,3})"
    r"\.[^\n]*"  # gcloud's, of the hosts of a TPU
    r"|ERROR:composer\.cli\.launcher:(?:Global r|R)ank (?P<composer>\d{1,7})"
    r"(?: \(PID \d{1,9}\))? (?:crashed with exit code|exited with code) (?P<composer_signal>-\d{1,2})"
    r"\.?|Process name: (?:(?P<named>\d{1,7})|(?P<elastic>[\w.-]{1,255})\[\d{1,4}\]) *\n"
    r"Exit code: (?P<named_code>\d{1,3})"
    r"|(?:\[rank: \d+\] )?Child process with PID (?P<pid>\d{1,9}) terminated with code "
    r"(?P<child>-?\d{1,3})\.[^\n]*|(?:(?:torch\.multiprocessing\.spawn\.)?ProcessExited)?Exception: "
    r"process (?P<index>\d{1,7}) terminated with (?:signal (?P<name>SIG[A-Z0-9]+)"
    r"|exit code (?P<spawned>\d{1,3})))$",
    re.MULTILINE,
)
_TEARDOWN = re.compile(
    r"^(?:Aborting on container exit|Gracefully stopping|Terminating remaining workers"
    r"|Waiting up to \d+ seconds for all training processes to terminate)",
    re.M,
)
"""From this message on, the parent ends the processes that are left."""

MESSAGES = (
    KnownMessage(
        key="exited unexpectedly",
        pattern=r"DataLoader worker \(pid\(s\) (?P<pids>[\d, ]+)\) exited unexpectedly",
        rule="EXIT007",
        says="worker processes of a DataLoader died (pid {pids})",
        fix="look for an out-of-memory kill (dmesg -T | grep -i killed) and for room in /dev/shm "
        "(df -h /dev/shm); num_workers=0 shows an exception in the dataset itself",
        proves_not="why: the loader sees only that they are gone",
        sample="RuntimeError: DataLoader worker (pid(s) 4321, 4322) exited unexpectedly",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="Child process with PID ",
        pattern=r"Child process with PID (?P<pid>\d+) terminated with code (?P<code>[1-9]\d{0,2})"
        r"\. Forcefully terminating all other processes",
        rule="EXIT003",
        says="Lightning's process of pid {pid} ended with exit code {code}, and Lightning ended the others",
        fix="read what that process wrote before this line, on its standard error; alone: "
        "CUDA_VISIBLE_DEVICES=0 with devices=1",
        proves_not="which rank it is: Lightning tells its pid",
        bare_end=True,
        sample="[rank: 2] Child process with PID 652 terminated with code 1. Forcefully terminating all "
        "other processes to avoid zombies",
        source="its wording from the source of Lightning 2.0 to 2.5 "
        "(strategies/launchers/subprocess_script.py)",
    ),
    KnownMessage(
        key="composer.cli.launcher",
        pattern=r"composer\.cli\.launcher[^\n]{0,40}[Rr]ank (?P<rank>\d+) (?:\(PID \d+\) )?"
        r"(?:crashed with exit code|exited with code) (?P<code>[1-9]\d{0,2})\b",
        rule="EXIT003",
        says="rank {rank} ended with exit code {code}, and Composer's launcher ended the others",
        fix="read what rank {rank} wrote: Composer prints it below this line",
        bare_end=True,
        sample="ERROR:composer.cli.launcher:Rank 3 crashed with exit code 1.",
        source="its wording from the source of Composer 0.10 to 0.32 (cli/launcher.py)",
    ),
    KnownMessage(
        key="failed to create process.",
        pattern=r"failed to create process\.",
        rule="LOG013",
        says="Windows could not start the program behind an .exe of Python's Scripts folder (torchrun, "
        "accelerate): failed to create process; the Python that it was installed with is not at its "
        "place, or the path has a blank",
        fix="python -m torch.distributed.run SCRIPT instead of torchrun (python -m "
        "accelerate.commands.launch); or "
        "reinstall it in this environment: python -m pip install --force-reinstall --no-deps PACKAGE",
        sample="failed to create process.",
        source="its wording from the source of setuptools and distlib (launcher.c)",
    ),
    KnownMessage(
        key="nsufficient shared memory",
        pattern=r"Unexpected bus error encountered in worker\. This might be caused by insufficient "
        r"shared memory",
        rule="RES004",
        says="a DataLoader's worker found no room in /dev/shm",
        fix="df -h /dev/shm; in a container give it more (docker run --shm-size=8g, or --ipc=host; in "
        "Kubernetes an emptyDir of medium Memory at /dev/shm); or fewer workers",
        sample="ERROR: Unexpected bus error encountered in worker. This might be caused by "
        "insufficient shared memory (shm).",
        source="its wording from the source of PyTorch 2.13.0",
    ),
)


def _torchrun_child(number: int) -> KnownMessage:
    """Return torchrun's line on the first child that a signal ended."""
    return KnownMessage(
        key=f"failed (exitcode: -{number})",
        pattern=rf"failed \(exitcode: -{number}\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
        rule="EXIT001",
        says=f"the process of local rank {{local}} (pid {{pid}}) was killed by {signal_name(number)}",
        fix=signal_advice(number),
        proves_not="which rank on several hosts: torchrun tells the rank on its host",
        sample=f"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -{number}) "
        "local_rank: 3 (pid: 812917) of binary: /usr/bin/python3",
        source="its wording from the source of PyTorch 1.9 to 2.13 (elastic/agent/server/api.py)",
    )


TORCHRUN_CHILDREN = tuple(
    _torchrun_child(int(s)) for s in signal.Signals if s is not signal.SIGABRT
)
"""torchrun's line on the first child that failed. A summary below it tells the rank too."""
TORCHRUN_ABORT = KnownMessage(
    key="failed (exitcode: -6)",
    pattern=r"failed \(exitcode: -6\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
    rule="EXIT001",
    says="the process of local rank {local} (pid {pid}) aborted (SIGABRT)",
    fix="read its output above this line: who aborts says why (an assertion, NCCL's watchdog after another "
    "rank has failed); PYTHONFAULTHANDLER=1 shows the line",
    proves_not="which rank on several hosts: torchrun tells the rank on its host",
    sample="E0321 02:07:10.105000 80700 torch/distributed/elastic/multiprocessing/api.py:833] failed "
    "(exitcode: -6) local_rank: 0 (pid: 80746) of binary: /usr/bin/python3",
    source="its wording from the source of PyTorch 1.9 to 2.13 (elastic/agent/server/api.py)",
)
"""The same of a child that aborted: see `end_reasons.drop_following_aborts`."""
_TORCHRUN_CODE = KnownMessage(
    key="failed (exitcode: ",
    pattern=r"failed \(exitcode: (?P<code>[1-9]\d{0,2})\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
    rule="EXIT003",
    says="the process of local rank {local} (pid {pid}) ended with exit code {code}; torchrun ended the "
    "others",
    fix="read what that process wrote above this line: its traceback, or its last words; if the processes "
    "wrote into one another, torchrun --log-dir LOGS --redirects 3 keeps a file for each",
    proves_not="why it ended; and which rank it is on several hosts: torchrun tells the rank on its host",
    bare_end=True,
    sample="ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 7 (pid: "
    "15393) of binary: /usr/bin/python",
    source="its wording from the source of PyTorch 1.9 to 2.13 (elastic/agent/server/api.py)",
)
"""The same of a child that ended itself."""
_CHILD_WITHOUT_FILE = KnownMessage(
    key="Child process ",
    pattern=r"Child process (?P<pid>\d+) \(local_rank (?P<local>\d+)\) FAILED "
    r"\(exitcode (?P<code>[1-9]\d{0,2})\)",
    rule="EXIT003",
    says=_TORCHRUN_CODE.says,
    fix=_TORCHRUN_CODE.fix,
    proves_not=_TORCHRUN_CODE.proves_not,
    bare_end=True,
    sample="CHILD PROCESS FAILED WITH NO ERROR_FILE\nChild process 2814 (local_rank 0) FAILED (exitcode 1)",
    source="its wording from the source of PyTorch 1.9 and 1.10 (elastic/multiprocessing/errors)",
)
"""The same in the warning of older versions."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    glimpses = tuple(_process_ends(exhibit))[:1000]
    has_summary = SUMMARY_ROW in exhibit.text
    torchrun = () if has_summary else (*TORCHRUN_CHILDREN, TORCHRUN_ABORT, _TORCHRUN_CODE)
    if not has_summary and _TORCHRUN_CODE.key not in exhibit.text:
        torchrun = (*torchrun, _CHILD_WITHOUT_FILE)
    heard = (*find_known_messages(exhibit, (*MESSAGES, *torchrun)), *_last_words(exhibit))
    return Testimony(heard=heard, glimpses=glimpses) if heard or glimpses else None


def _last_words(exhibit: Exhibit) -> Iterator[Heard]:
    """Yield how a launcher ended: it counts if nothing says which child failed, and why."""
    traceback = final_launcher_error(exhibit.text)
    if traceback is None:
        return
    line = f"{traceback.type}: {traceback.message.partition(chr(10))[0]}".rstrip(": ")
    first = advice_by_words(line)
    yield Heard(
        rule="LOG012",
        says=f"a process of the job ended, as whoever started it reports: {line[:200]}",
        speakers=(Speaker(exhibit.rank, line[:300], exhibit.place_of_line(traceback.begin)),),
        fix=f"{first}; then {COLLECT_LOGS}" if first else COLLECT_LOGS,
        proves_not="which process failed first, and why: its own log says so",
    )


def _process_ends(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    teardown = _TEARDOWN.search(text)
    failed = False
    reported: set[str] = set()  # horovodrun tells the first of them again
    for match in _END.finditer(text):
        code = _exit_code(match)
        number = -code if code < 0 else code - SHELL_SIGNAL_OFFSET
        killed = number if number in VALID_SIGNALS else None
        # An exit code of a container or a child without a rank tells nothing more than its traceback.
        if (
            code == 0
            or match["named"] in reported
            or (match["elastic"] and reported)
            or (killed is None and (match["code"] or match["pid"]))
        ):
            continue
        after_failure = failed or (teardown is not None and teardown.start() < match.start())
        ours = after_failure and killed in (signal.SIGKILL, signal.SIGTERM)
        failed = True
        reported.add(match["rank"] or "")
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"] or match["composer"] or match["named"] or match["worker"] or -1),
            host=match["host"] or match["elastic"] or "",
            pid=int(match["pid"] or 0),
            guess=int(match["index"] or -1),
            exit=Exit(
                ended_at=0.0,
                code=code if killed is None else None,
                signal=killed,
                ours=ours,
                last_line=match[0][:300],
            ),
        )


def _exit_code(match: re.Match[str]) -> int:
    """Return the exit code, negative for a signal; 0 for a name that is no signal on this system."""
    if match["name"]:
        return -getattr(signal, match["name"], 0)
    names = ("code", "status", "composer_signal", "named_code", "ssh_status", "child", "spawned")
    codes = (match[n] for n in names)
    return int(next(c for c in codes if c))


READER = LogReader(read=read_log)
