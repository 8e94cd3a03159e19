"""Imports once what the script imports at its top, and forks the workers of this host from there (`run
--warm`). It holds no port, and runs nothing of the script. It runs in the user's Python, where allaboard need
not be installed.

Called with the descriptor of its socket to the reaper (SOCK_SEQPACKET), how many workers it forks before it
exits (0: as many as are asked for), and the arguments of the workers' interpreter. A request is a JSON object
with ``worker``, ``environment`` and ``folder``, and comes with the two descriptors of that worker's output; a
long one lies in a file, the third descriptor. The answer is ``{"pid": …}``, or ``{"unfit": reason}`` and the
end: the worker has to be started in the ordinary way.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from . import main_module, script_imports
else:  # run by its path, below no package
    import main_module
    import script_imports

if TYPE_CHECKING:
    from typing import Any

MESSAGE_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1
_ARG_START, _ARG_END = 45, 46
"""Places of arg_start and arg_end among the fields of /proc/PID/stat behind the name (proc(5): 48 and 49)."""


def import_early(arguments: list[str]) -> str:
    """Import what the script imports before it does anything that is not known here, from where packages
    are installed. Variables that it sets before hold during the imports, and no longer.

    Return why workers that are forked now would differ from those that Python starts: imports have started
    threads, which a fork has not. "" if nothing is against it.
    """
    replaced: dict[str, tuple[str | None, str | None]] = {}
    for name, value, is_default in script_imports.certain_steps(arguments):
        if value is None:
            try:
                importlib.import_module(name)
            except BaseException:  # it fails in the script too, where the user sees it
                continue
        elif not is_default or name not in os.environ:
            value_before = replaced.get(name, (os.environ.get(name),))[0]
            replaced[name] = value_before, value
            os.environ[name] = value
    script_imports.restore_variables(replaced)
    thread_count = len(os.listdir("/proc/self/task")) - 1  # noqa: PTH208 - of a kernel, not of a folder's files
    if not thread_count:
        return ""
    return (
        f"its imports have started {thread_count} thread{'s' if thread_count > 1 else ''} of their own "
        "(OMP_NUM_THREADS=1 avoids those of OpenMP and OpenBLAS)"
    )


def serve(link: socket.socket, count: int) -> tuple[dict[str, Any], list[int]]:
    """Fork a worker for each request. Return only in a worker, with its request and its descriptors; exit
    when the reaper has gone, or ``count`` workers are forked."""
    # What is there now is never collected: that would write to each page that is shared, and so copy it.
    gc.collect()
    gc.freeze()
    forked = 0
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(link, MESSAGE_BYTES, 3)
        except OSError:  # ECONNRESET: the reaper was killed
            data, fds = b"", []
        if not data:
            os._exit(0)
        if len(fds) > 2:
            with os.fdopen(fds.pop(), "rb") as file:
                # It shares its offset with the agent's descriptor, which is at the end.
                file.seek(0)
                data = file.read()
        try:
            is_worker = _fork_orphan(link)
        except (OSError, ValueError) as error:
            link.send(json.dumps({"unfit": f"it could not fork: {error}"}).encode())
            os._exit(1)
        if is_worker:
            link.close()
            request: dict[str, Any] = json.loads(data)
            return request, fds
        for fd in fds:
            os.close(fd)
        forked += 1
        if forked == count:
            os._exit(0)


def _fork_orphan(link: socket.socket) -> bool:
    """Fork a process whose parent is the reaper, and tell the reaper its pid; return True in that process.

    By a process between, whose end makes the reaper the parent, since that is a child subreaper (prctl(2)).
    The new process waits until its pid is told: else the reaper could see it end before it knows of it.
    """
    pid_reader, pid_writer = os.pipe()
    go_reader, go_writer = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)
        if pid:
            os.write(pid_writer, b"%d" % pid)
            os._exit(0)
        for fd in (pid_reader, pid_writer, go_writer):
            os.close(fd)
        is_known = os.read(go_reader, 1)
        os.close(go_reader)
        if (
            not is_known
        ):  # the server has ended, and the reaper starts this worker in the ordinary way
            os._exit(127)
        return True
    os.close(pid_writer)
    os.close(go_reader)
    try:
        os.waitpid(between, 0)
        link.send(json.dumps({"pid": int(os.read(pid_reader, 32))}).encode())
        os.write(go_writer, b"1")
    finally:
        os.close(pid_reader)
        os.close(go_writer)
    return False


def become_worker(
    request: dict[str, Any], fds: list[int], first_environment: dict[str, str], arguments: list[str]
) -> None:
    """Give this process the session, streams, folder and environment that `worker_exec` gives to one that
    it starts, and random numbers of its own."""
    os.setsid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for fd, standard in zip(fds, (1, 2)):  # noqa: B905 - Python 3.9 knows no strict
        os.dup2(fd, standard)
        os.close(fd)
    os.chdir(request["folder"])
    for name, value in {**request["environment"], "ALLABOARD_PID": str(os.getpid())}.items():
        if first_environment.get(name) != value:  # else a module that was imported may have set it
            os.environ[name] = value
    # As the interpreter and the probe have it: the stream was made for another output.
    is_ours = os.environ.get("ALLABOARD_STDOUT") == str(os.fstat(1).st_ino)
    sys.stdout.reconfigure(line_buffering=is_ours or os.isatty(1))  # type: ignore[union-attr]
    # `random` makes a new seed in a forked child by itself; NumPy's global generator does not.
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    _show_command([sys.executable, *arguments])


def _show_command(arguments: list[str]) -> None:
    """Show these arguments as this process's command line: people, and tools that look for a script's
    ranks, know them by it. Nothing depends on it, so nothing is raised."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        text = b"\0".join(os.fsencode(word) for word in arguments)
        # The memory is this process's own, and the arguments that it was started with are more than these.
        if start and len(text) < end - start:
            ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)
    except (OSError, ValueError, IndexError):
        pass


def main() -> None:
    own_module = sys.modules["__main__"]  # kept: this function's globals are its
    link, count, arguments = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3:]
    link.set_inheritable(False)
    sys.path.pop(0)  # this folder: the script's takes its place
    for module in (main_module, script_imports):
        del sys.modules[module.__name__]  # the script may have one of the same name
    first_environment = dict(os.environ)
    why_unfit = import_early(arguments)
    if why_unfit:
        link.recv(
            1
        )  # with a request unread, its end would reset the connection, and the answer be lost
        link.send(json.dumps({"unfit": why_unfit}).encode())
        sys.exit(1)
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    # It was the first worker's output, whose end must be seen when that worker ends.
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    request, fds = serve(link, count)
    gc.unfreeze()
    become_worker(request, fds, first_environment, arguments)
    main_module.hide_own_frames(__file__)
    main_module.take_part_as(int(request["worker"]), arguments)
    main_module.run_as_main(arguments)
    del own_module


if __name__ == "__main__":
    main()
