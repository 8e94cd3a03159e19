"""Starts workers on this host. Imports next to nothing, so that they start before the agent is up.

Order matters here: the reaper is forked first, the workers next, and only then does the agent load
what it needs to watch them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from allaboard.errors import AllaboardError, describe_os_error
from allaboard.hosts import open_file_limit, pidfd
from allaboard.launch import serving
from allaboard.launch.fork_server_link import FORK_SERVER_NUMBER, WARM_VARIABLE
from allaboard.launch.launch_plan import LaunchPlan
from allaboard.launch.open_file_limit import raise_limit
from allaboard.launch.port_reservation import NoFreePortError
from allaboard.launch.worker_environments import worker_environments
from allaboard.launch.worker_streams import StreamPair, open_streams
from allaboard.probe import blackbox_folder
from allaboard.probe.layout import IMPORTS_PREFIX

REAPER_EXIT_TIMEOUT_S = 5.0
"""How long the reaper gets to end what is still below it; after two of these seconds it uses
SIGKILL."""
SPAWN_SEND_TIMEOUT_S = 30.0
"""How long the reaper gets to accept a request."""
_TOO_FEW = (
    "no more than {most} files may be open here (ulimit -Hn), too few for {size} workers; raise that "
    "limit, or start fewer"
)


class WorkerStartError(AllaboardError):
    """The job cannot be started; the message says why and what to type."""


class Worker(NamedTuple):
    """A worker that was asked for, with the read ends of its output."""

    number: int
    """Its place among the workers of this host."""
    out: int
    err: int
    is_terminal: bool = False
    """True if its output goes to pseudo-terminals."""
    pid: int = 0
    """Its pid if it stood by before; 0 where the reaper is still to tell it."""


TakeStandby = Callable[[int, dict[str, str]], Worker | None]
"""Turns a process that stands by into the worker of this number and environment; None if there is none."""


class Launch(NamedTuple):
    """Workers that were started, and what has to be released after them."""

    plan: LaunchPlan
    reaper: socket.socket
    """Our end of the socket to the reaper."""
    boxes: Path
    """Folder of the black boxes."""
    workers: list[Worker]
    ports: list[socket.socket]
    """Sockets that hold ports for the workers."""
    started_at: float
    """When the launch began (CLOCK_MONOTONIC s)."""
    environments: Sequence[dict[str, str]] = ()
    """What each worker's environment got beyond ours."""
    reaper_pid: int = 0
    """Pid of the reaper's guard, which ends when the reaper has; 0 if there is none."""

    def release_ports(self) -> None:
        while self.ports:
            self.ports.pop().close()

    def worker_name(self, index: int) -> str:
        """Return the name that a person uses: ``ps 0``, ``worker 2``."""
        job, number = self.plan.tasks[index] if self.plan.tasks else ("worker", index)
        return f"{job} {number}"

    def respawn_worker(self, index: int) -> Worker:
        """Ask for this worker once more, with the addresses that it had. Raises WorkerStartError."""
        try:
            worker = _spawn(self.plan, self.reaper, index, self.environments[index])
        except OSError as error:
            raise WorkerStartError(_start_failure(error, self.plan)) from None
        self.workers[index] = worker
        return worker

    def spawn_helper(
        self,
        number: int,
        command: list[str],
        environment: dict[str, str],
        on_terminal: bool = False,
    ) -> Worker:
        """Ask for a process that is no worker; ``number`` is negative and identifies it in the
        reaper's answer."""
        return _ask_reaper(self.reaper, number, command, environment, on_terminal)

    def interpreter_arguments(self, index: int) -> list[str]:
        """Return the arguments of this worker's interpreter: a script and its arguments, or -m and
        more."""
        return (_server_command(self.plan) if index in self.plan.served else self.plan.command)[1:]

    def remove_boxes(self) -> None:
        """Remove the black boxes."""
        import shutil  # not before the workers start

        shutil.rmtree(self.boxes, ignore_errors=True)

    def close_and_wait(self) -> None:
        """Return when the reaper has gone, and with it everything that it still had to end, or
        after `REAPER_EXIT_TIMEOUT_S`.

        Whoever waits for this command to end may count on nothing of the job being left.
        """
        self.reaper.close()
        if not self.reaper_pid:
            return
        with contextlib.suppress(OSError):  # it was killed, and is reaped already
            process = pidfd.open_process(self.reaper_pid)
            exited = select.poll()  # not select(2), which knows no descriptor above 1023
            exited.register(process, select.POLLIN)
            exited.poll(REAPER_EXIT_TIMEOUT_S * 1000)
            os.close(process)


def new_job_id() -> str:
    """Return a short id, sortable by time, different for two jobs of one second."""
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


def launch_workers(plan: LaunchPlan) -> Launch:
    """Start every worker. Their ``spawned`` messages are on their way when it returns.

    Raises WorkerStartError if there are no ports, no place for the black boxes, or too few files may be open.
    """
    from allaboard.launch import reaper

    started_at = time.monotonic()
    try:
        reaper.open_standard_streams()
    except OSError as error:
        raise WorkerStartError(_start_failure(error, plan)) from None
    boxes = _make_box_folder(plan.job, plan.size)
    try:
        # Before the ports are reserved: it comes up meanwhile, and holds none of them.
        end, reaper_pid = reaper.fork_reaper(str(boxes))
    except OSError as error:
        boxes.rmdir()
        raise WorkerStartError(_start_failure(error, plan)) from None
    try:
        environments, reserved_ports = worker_environments(plan, boxes)
    except OSError as error:
        boxes.rmdir()
        end.close()
        raise WorkerStartError(_start_failure(error, plan)) from None
    raise_limit()  # after the fork: ours alone, a pair of pipes and more for each worker
    try:
        running = _spawn_all(plan, end, boxes, environments, reserved_ports, started_at)
    except OSError as error:
        end.close()  # what has been started ends with it
        raise WorkerStartError(_start_failure(error, plan)) from None
    return running._replace(reaper_pid=reaper_pid)


def _start_failure(error: OSError, plan: LaunchPlan) -> str:
    """Return what keeps workers from being started, and what to do."""
    if error.errno == errno.EMFILE:
        return _TOO_FEW.format(most=open_file_limit.current_soft_limit(), size=plan.size)
    if error.errno == errno.EAGAIN:
        return "no more processes may be made here (ulimit -u, or pids.max of the container)"
    if isinstance(error, FileNotFoundError) and not error.filename:
        return "the working folder is gone (removed, or made anew); cd into one that is there"
    return str(error) if isinstance(error, NoFreePortError) else describe_os_error(error)


def relaunch_workers(
    previous: Launch, round_: int, take_standby: TakeStandby | None = None
) -> Launch:
    """Start every worker once more, with new ports, after all of the attempt before have ended.

    Raises WorkerStartError if there are no ports, or a worker cannot be asked for.
    """
    started_at = time.monotonic()
    previous.release_ports()
    plan, end, boxes = previous.plan._replace(round=round_), previous.reaper, previous.boxes
    try:
        for box in boxes.iterdir() if boxes.is_dir() else ():
            if not box.name.startswith(IMPORTS_PREFIX):  # a worker that stood by writes none
                box.unlink(missing_ok=True)
        boxes.mkdir(mode=0o700, exist_ok=True)  # somebody may have cleaned /dev/shm
        environments, ports = worker_environments(plan, boxes)
        running = _spawn_all(plan, end, boxes, environments, ports, started_at, take_standby)
    except OSError as error:
        raise WorkerStartError(_start_failure(error, plan)) from None
    return running._replace(reaper_pid=previous.reaper_pid)


def _spawn_all(
    plan: LaunchPlan,
    end: socket.socket,
    boxes: Path,
    environments: list[dict[str, str]],
    reserved_ports: list[socket.socket],
    started_at: float,
    take_standby: TakeStandby | None = None,
) -> Launch:
    first_streams = None
    if plan.is_warm and not plan.round:
        first_streams = _start_fork_server(plan, end, environments)
    workers = [
        (take_standby(index, e) if take_standby else None)
        or _spawn(plan, end, index, e, None if index else first_streams)
        for index, e in enumerate(environments)
    ]
    running = Launch(
        plan=plan,
        reaper=end,
        boxes=boxes,
        workers=workers,
        ports=reserved_ports,
        started_at=started_at,
        environments=environments,
    )
    if not plan.gate:
        running.release_ports()  # who only observes holds no port
    return running


def _start_fork_server(
    plan: LaunchPlan, end: socket.socket, environments: list[dict[str, str]]
) -> StreamPair:
    """Ask the reaper for the process that imports for all workers, with the variables that are the same for
    all. Return the streams of the first worker: what the imports print is its output."""
    streams = open_streams(0 in plan.on_terminal)
    program = str(Path(serving.__file__).with_name("fork_server.py"))
    limit = "0" if plan.stays_warm else str(plan.size)
    descriptor = ""  # filled in by the reaper, see `fork_server_link.DESCRIPTOR_ARGUMENT`
    command = [plan.command[0], program, descriptor, limit, *plan.command[1:]]
    shared = set.intersection(*(set(environment.items()) for environment in environments))
    variables = {**dict(shared), WARM_VARIABLE: "1"}
    try:
        _send_spawn(end, FORK_SERVER_NUMBER, command, variables, streams, {"serves": True})
    except OSError:
        streams.close_our_ends()
        streams.close_worker_ends()
        raise
    return streams


def _spawn(
    plan: LaunchPlan,
    end: socket.socket,
    index: int,
    environment: dict[str, str],
    streams: StreamPair | None = None,
) -> Worker:
    """Asks the reaper for one worker."""
    command = _server_command(plan) if index in plan.served else plan.command
    on_terminal = index in plan.on_terminal
    return _ask_reaper(end, index, command, environment, on_terminal, plan.is_warm, streams)


def _ask_reaper(
    end: socket.socket,
    index: int,
    command: list[str],
    environment: dict[str, str],
    on_terminal: bool = False,
    is_forked: bool = False,
    streams: StreamPair | None = None,
) -> Worker:
    streams = streams or open_streams(on_terminal)
    # By it the probe knows whether its standard output is still this pipe.
    environment["ALLABOARD_STDOUT"] = str(os.fstat(streams.worker_out).st_ino)
    try:
        _send_spawn(end, index, command, environment, streams, {"fork": True} if is_forked else {})
    except OSError:
        streams.close_our_ends()
        raise
    finally:
        # The reaper has copies of its own.
        streams.close_worker_ends()
    return Worker(number=index, out=streams.out, err=streams.err, is_terminal=streams.is_terminal)


def _send_spawn(
    end: socket.socket,
    number: int,
    command: list[str],
    environment: dict[str, str],
    streams: StreamPair,
    manner: dict[str, bool],
) -> None:
    """Send the request for a process; ``manner`` says how it is made, see `reaper`. Raises OSError."""
    from allaboard.launch import reaper

    message = {
        "do": "spawn",
        "worker": number,
        "command": command,
        "folder": working_folder(),
        "environment": environment,
        **manner,
    }
    timeout_before = end.gettimeout()
    end.settimeout(SPAWN_SEND_TIMEOUT_S)  # the reaper forks more slowly than many can be asked for
    try:
        reaper.send_spawn(end, message, [streams.worker_out, streams.worker_err])
    finally:
        end.settimeout(timeout_before)


@cache
def working_folder() -> str:
    """Return the workers' working folder as it was at first: a worker that is started again later
    finds the path, if not this very folder. Raises FileNotFoundError if it has gone already."""
    return str(Path.cwd())


def _make_box_folder(job: str, members: int) -> Path:
    """Make a folder in memory for the black boxes; in the temporary folder if /dev/shm has no room."""
    for base in blackbox_folder.folders_with_room(members):
        folder = Path(base) / f"allaboard-{os.getuid()}-{job}"
        with contextlib.suppress(OSError):
            # /dev/shm is everybody's: a folder that is there already is not taken, whoever made it.
            folder.mkdir(mode=0o700)
            return folder
    raise WorkerStartError(
        "no room for the black boxes in /dev/shm or the temporary folder; free some"
    )


def _server_command(plan: LaunchPlan) -> list[str]:
    """Return the command of the server loop, run by the script's own Python."""
    return [plan.command[0], str(Path(serving.__file__).with_name("tensorflow_server.py"))]
