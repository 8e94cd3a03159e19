"""A small DDP job that trains for real, and fails in the way that --fault names on rank --guilty.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import ctypes
import fcntl
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

# Thousands of modules are loaded, and looking all through for garbage takes a fifth of that.
gc.set_threshold(50_000, 20, 1_000)

import torch
import torch.distributed as dist
import torch.distributed.nn  # before init, or its defaults keep the group alive past destroy
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

IN_LOADER = (
    "stuck-in-data-loader",
    "loader-worker-killed",
    "loader-worker-stopped",
    "loader-exception",
)


class Digits(Dataset):
    """Random images with a rule to learn; one item may never come."""

    def __init__(self, size, fails_at=-1, fault="", marked=None):
        self.marked = marked
        self.fault = fault
        generator = torch.Generator().manual_seed(7 + int(os.environ["RANK"]))
        self.images = torch.randn(size, 64, generator=generator)
        self.labels = (self.images.sum(1) > 0).long()
        self.fails_at = fails_at

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        if index == self.fails_at:
            mark(self.marked)
            self.fail()
        return self.images[index], self.labels[index]

    def fail(self):
        if self.fault == "loader-worker-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == "loader-worker-stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.fault == "loader-exception":
            decode(b"GIF89a")
        read_from_a_dead_mount()


def decode(data):
    if not data.startswith(b"\x89PNG"):
        raise ValueError(f"no PNG file: {data!r}")


class AbortsWhenCollected:
    """An object that aborts when it is collected, as gloo's threads may while Python exits."""

    def __del__(self, abort=os.abort):
        abort()


def read_from_a_dead_mount():
    time.sleep(3600)


def wait_for_flag(flag):
    while not flag:
        pass


def start_from_a_dead_mount():
    """Start a child that cannot open its file; meanwhile the kernel keeps the parent in state D."""
    pipe = Path(tempfile.mkdtemp()) / "never-written"
    os.mkfifo(pipe)
    action = (os.POSIX_SPAWN_OPEN, 0, str(pipe), os.O_RDONLY, 0)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[action])


def retry_later():
    time.sleep(3600)


def cached(path):
    with Path(path).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def hold_lock(path):
    """Wait for a lock that another process holds, as a crashed job's cache builder would."""
    if os.fork() == 0:
        file = Path(path).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(600)
        os._exit(0)
    time.sleep(0.3)


def eat_memory():
    eaten = []
    while True:
        eaten.append(bytearray(os.urandom(1 << 20)) * 16)


def ask():
    """Ask a question at a terminal that nobody watches."""
    sys.stdin = os.fdopen(os.openpty()[1])
    return input("go on? ")


def write_log(first, second):
    with first:
        time.sleep(0.2)
        with second:
            pass


def take_two_locks():
    cache, log = threading.Lock(), threading.Lock()
    threading.Thread(target=write_log, args=(log, cache), daemon=True).start()
    flush(cache, log)


def flush(second, first):
    with second:
        time.sleep(0.2)
        with first:
            pass


def write_state(lock, delay=0.0):
    with lock:
        time.sleep(delay)


def interrupt_own_lock():
    """Get a signal while a lock is held that its handler wants, too."""
    lock = threading.Lock()
    signal.signal(signal.SIGALRM, lambda number, frame: write_state(lock))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    write_state(lock, delay=0.5)


def wait_for(path):
    while not os.path.exists(path):
        pass


def ask_label_service():
    """Ask a service that accepts the connection and never answers."""
    service = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(service.getsockname()) as connection:
        connection.sendall(b"GET labels")
        return connection.recv(4096)


def report_progress():
    while True:
        time.sleep(0.05)


def clean(text):
    return re.match("(a+)+$", text)


def read_meter(pipe):
    """Call a vendor's library that is loaded by PyDLL, which keeps the GIL."""
    ctypes.PyDLL(None).read(pipe, ctypes.create_string_buffer(1), 1)


def fail(name, rank):
    """Stage the fault in the middle of training."""
    if name == "stuck-in-python":
        wait_for_flag([])
    elif name == "polls-for-a-file":
        wait_for(tempfile.gettempdir() + "/this-file-never-comes")
    elif name == "asleep":
        retry_later()
    elif name == "waits-for-an-answer":
        ask_label_service()
    elif name == "input":
        ask()
    elif name == "two-locks":
        take_two_locks()
    elif name == "own-lock":
        interrupt_own_lock()
    elif name == "gil-held":
        threading.Thread(target=report_progress, daemon=True, name="progress").start()
        clean("a" * 60 + "!")
    elif name == "gil-held-aside":
        pipe, _ = os.pipe()
        threading.Thread(target=read_meter, args=(pipe,), daemon=True, name="meter").start()
    elif name == "stuck-in-child":
        subprocess.run(["sleep", "3600"], check=True)
    elif name == "waits-for-a-child":
        subprocess.run(["sleep", "14"], check=True)
    elif name == "child-unread":
        samples = subprocess.Popen(["seq", "1", "1000000"], stdout=subprocess.PIPE)
        samples.wait()
    elif name == "uninterruptible":
        start_from_a_dead_mount()
    elif name == "file-lock":
        path = Path(tempfile.gettempdir()) / f"cache-{os.getppid()}-{rank}.lock"
        hold_lock(path)
        cached(path)
    elif name == "exception":
        raise ValueError("label 11 is out of range")
    elif name == "closes-its-descriptors":
        os.closerange(3, 4096)
    elif name == "exits-3":
        print("licence server says no", flush=True)
        os._exit(3)
    elif name == "leaves-early":
        sys.exit(0)
    elif name == "out-of-memory":
        eat_memory()
    elif name == "other-order":
        dist.broadcast(torch.ones(3), src=0)
    elif name == "other-order-functional":
        from torch.distributed import _functional_collectives as functional  # PyTorch 1 has none

        functional.broadcast(torch.ones(3), 0, dist.group.WORLD).wait()
    elif name == "other-order-unseen":
        operations = (
            torch.ops._c10d_functional
        )  # as a compiled graph calls them; PyTorch 1 has none
        group = dist.group.WORLD.group_name
        operations.wait_tensor(operations.broadcast(torch.ones(3), 0, group))
    elif name == "killed-by-itself":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "aborts-at-exit":
        sys.aborts = AbortsWhenCollected()
    elif name == "comes-back":
        time.sleep(10)
    elif name == "pause":
        time.sleep(1.5)
    elif name == "evaluates":
        until = time.monotonic() + 20
        while time.monotonic() < until:
            torch.ones(99, 99) @ torch.ones(99, 99)


def status_page(port, open_sockets=[]):  # noqa: B006 - open as long as the process
    open_sockets.append(socket.create_server(("", port)))


def before_init(name, guilty):
    if not guilty:
        return
    if name == "asleep-before-init":
        retry_later()
    elif name == "dies-before-init":
        raise FileNotFoundError("/data/train-00001.tfrecord")
    elif name == "leaves-before-init":
        sys.exit(0)
    elif name == "wrong-rank":
        os.environ["RANK"] = "0" if os.environ["RANK"] != "0" else "1"
    elif name == "rank-out-of-range":
        os.environ["RANK"] = os.environ["WORLD_SIZE"]
    elif name == "sizes-disagree":
        os.environ["WORLD_SIZE"] = "2"
    elif name == "port-taken":
        status_page(int(os.environ["MASTER_PORT"]))
    elif name == "other-port":
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        Path(path).write_text(str(time.time()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--mark")
    parser.add_argument("--init", help="where to meet, if not as the environment says")
    parser.add_argument("--loader-workers", type=int, default=0)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    guilty = rank == options.guilty
    if guilty:
        mark(options.mark)
    if options.fault == "never-comes":
        os.environ["WORLD_SIZE"] = str(int(os.environ["WORLD_SIZE"]) + 1)
    before_init(options.fault, guilty)
    backend = "nccl" if options.fault == "other-backend" and guilty else "gloo"
    timeout = timedelta(seconds=options.timeout)
    if options.init:
        size = int(os.environ["WORLD_SIZE"])
        dist.init_process_group(backend, options.init, timeout, size, rank)
    else:
        dist.init_process_group(backend, timeout=timeout)
    torch.manual_seed(0)
    width = options.width
    layers = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 2))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    fails_at = options.at_step * 8 if options.fault in IN_LOADER and guilty else -1
    data = Digits(options.at_step * 8 + 64, fails_at, options.fault, options.mark)
    step = 0
    while step < options.steps:
        for images, labels in DataLoader(data, batch_size=8, num_workers=options.loader_workers):
            step += 1
            if guilty and step == options.at_step:
                mark(options.mark)
                fail(options.fault, rank)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean)
            if step >= options.steps:
                break
            time.sleep(0.005)
    if rank == 0:
        print(f"trained {step} steps, loss {mean.item() / dist.get_world_size():.4f}", flush=True)
    # PyTorch 2.13 may deadlock where the group goes while a Gloo thread still lets go of the last
    # collective's tensors: both want the GIL, and one joins the other.
    time.sleep(0.3)
    dist.destroy_process_group()
    if guilty and options.fault == "never-ends":
        mark(options.mark)
        retry_later()


if __name__ == "__main__":
    main()
