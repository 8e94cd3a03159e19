"""Steps with a fault on a GPU, and what has to be said of it."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable

from bench import JOBS, ROOT, Bench, Outcome, says

Run = Callable[[Bench], Outcome]
HANG = ("--on-hang", "stop", "--hang-after", "15")


def run_says(
    fault: str, pattern: str, never: str = "", ends_well: bool = False, words: tuple[str, ...] = ()
) -> Run:
    """Return a step in which two ranks run with a fault, and the run says this, and never that."""

    def run(bench: Bench) -> Outcome:
        code, output = bench.train(2, "nccl_job.py", "--fault", fault, *words, options=HANG)
        outcome = says(output, pattern, never)
        if (code == 0) is not ends_well:
            return Outcome(False, f"exit code {code}; {outcome.detail}")
        return outcome

    return run


def dumps_say(fault: str, pattern: str, never: str = "") -> Run:
    """Return a step in which the ranks run into NCCL's timeout without allaboard; their logs and the Flight
    Recorder's dumps are diagnosed."""

    def run(bench: Bench) -> Outcome:
        dumps = {
            name: str(bench.out / f"{fault}-dump_")
            for name in ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE")
        }
        asked = {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", **dumps}
        ranks = bench.start_ranks(2, "nccl_job.py", "--fault", fault, "--timeout", "12", **asked)
        bench.wait(40)
        files = []
        for number, process in enumerate(ranks):
            bench.end(process)
            log = bench.out / f"{fault}-rank{number}.log"
            log.write_text(process.communicate()[0])
            files.append(str(log))
        files += sorted(map(str, bench.out.glob(f"{fault}-dump_*")))
        _, output = bench.call(bench.allaboard("diagnose", *files), 60, f"diagnose-{fault}")
        return says(output, pattern, never)

    return run


def pid_says(fault: str, pattern: str, never: str = "") -> Run:
    """Return a step in which a hang is examined by the pid of rank 0 alone."""

    def run(bench: Bench) -> Outcome:
        ranks = bench.start_ranks(2, "nccl_job.py", "--fault", fault)
        bench.wait(8)
        pid = str(ranks[0].pid)
        _, output = bench.call(bench.allaboard("diagnose", pid), 90, f"pid-{fault}")
        return says(output, pattern, never)

    return run


def stopped_rank(backend: str) -> Run:
    """Return a step in which rank 1 of two is stopped by SIGSTOP."""

    def run(bench: Bench) -> Outcome:
        words = ["--backend", backend, "--device", bench.device, "--steps", "1000000"]
        ranks = bench.start_ranks(2, "torch_job.py", *words)
        bench.wait(2)
        ranks[1].send_signal(signal.SIGSTOP)
        bench.wait(8)
        pid = str(ranks[0].pid)
        _, output = bench.call(bench.allaboard("diagnose", pid), 90, f"stopped-{backend}")
        return says(output, r"HANG001[^\n]*")

    return run


def out_of_memory(bench: Bench) -> Outcome:
    """A rank asks for more memory than the GPU has."""
    code, output = bench.train(1, "torch_fault.py", "--fault", "memory", "--device", bench.device)
    said = says(output, r"RES001[^\n]*")
    return Outcome(code != 0 and said.held, f"exit code {code}: {said.detail}")


def leftover(bench: Bench) -> Outcome:
    """A process of an earlier run holds memory: nvidia-smi lists it, and a new run names it."""
    holder = bench.start([sys.executable, str(JOBS / "torch_fault.py"), "--fault", "holds"])
    for line in holder.stdout or ():
        if "ready" in line:
            break
    _, xml = bench.call(["nvidia-smi", "-q", "-x"], 60, "nvidia-smi-leftover")
    _, output = bench.train(1, "torch_job.py", "--backend", "nccl", "--steps", "400")
    bench.end(holder)
    sys.path.insert(0, str(ROOT / "src"))
    from allaboard.diagnosis.instruments.nvidia_smi_xml import read_log
    from allaboard.facts import Exhibit

    testimony = read_log(Exhibit(name="nvidia-smi.xml", data=xml.encode()))
    gpus = testimony.hardware.gpus if testimony is not None else ()
    held = [(g.index, p) for g in gpus for p in g.processes if p.memory_mib > 500]
    said = says(output, rf"RES005 gpu-held: \S+ \(pid {holder.pid}\)[^\n]*")
    # In a container nvidia-smi shows the pids of the host, or none.
    seen = [(i, p.pid, p.memory_mib) for i, p in held]
    return Outcome(bool(held) and said.held, f"{said.detail}; nvidia-smi: {seen}")


def kernel_hangs(bench: Bench) -> Outcome:
    """A kernel does not end: the rank waits in synchronize()."""
    rank, *_ = bench.start_ranks(1, "torch_fault.py", "--fault", "kernel", "--device", bench.device)
    bench.wait(3)
    _, output = bench.call(bench.allaboard("diagnose", str(rank.pid)), 90, "diagnose-kernel")
    return says(output, r"torch_fault\.py:\d+[^\n]*|synchronize[^\n]*")


def kernel_log(bench: Bench) -> Outcome:
    """The kernel's log can be read, and has no Xid; or has some, which are named."""
    code, output = bench.call(["dmesg"], 30, "dmesg")
    if code != 0:
        return Outcome(True, "dmesg needs root here: nothing is read of it")
    code, answer = bench.call(bench.allaboard("diagnose", str(bench.out / "dmesg.txt")), 60)
    events = len(re.findall(r"NVRM: Xid", output))
    return Outcome((events > 0) == ("HW001" in answer), f"{events} Xid lines; exit code {code}")
