"""Messages of JAX about its coordination service, which ends a process by SIGABRT rather than raise."""

from __future__ import annotations

from allaboard.analysis.failures.post_traceback_output import progress_lines
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

TPU_WARNING = "Did you run your code on all TPU hosts"
"""A slow start warns too, and goes on."""
_RECORDED = "recorded, JAX 0.10.2"
MESSAGES = (
    KnownMessage(
        key="DEADLINE_EXCEEDED",
        pattern=r"DEADLINE_EXCEEDED: [^\n]*\n\s*RPC: /[\w.]+\.CoordinationService/RegisterTask",
        rule="JOIN004",
        says="a process gave up registering with the coordinator (process 0)",
        fix="see which of the num_processes has no log; compare coordinator_address in all of them",
        awaits=True,
        proves_not="who is missing: the coordinator itself, any other process, and a wrong address "
        "look the same, and the one that says it is not at fault",
        sample="F1121 12:32:58.523336 31002 client.h:80] Terminating process because the JAX "
        "distributed service detected fatal errors. absl::Status: DEADLINE_EXCEEDED: Deadline "
        "Exceeded\n\nRPC: /xla.coordination.CoordinationService/RegisterTask",
        source=_RECORDED,
    ),
    KnownMessage(
        key="ALREADY_EXISTS",
        pattern=r"ALREADY_EXISTS: Aborted connect attempt as there is a request from a newer "
        r"incarnation",
        rule="JOIN005",
        says="two processes claim the same process_id: this one was dropped for a newer one",
        fix="give every process a process_id of its own: JAX_PROCESS_ID, or process_id= in the code",
        proves_not="which of the two is wrong; one that was restarted looks the same",
        sample="client.h:80] Terminating process because the JAX distributed service detected fatal "
        "errors. absl::Status: ALREADY_EXISTS: Aborted connect attempt as there is a request from a "
        "newer incarnation.\n\nRPC: /xla.coordination.CoordinationService/RegisterTask",
        source=_RECORDED,
    ),
    KnownMessage(
        key="barrier",
        # Whom it lists is told by the coordination service's own witness.
        pattern=r"[Bb]arrier timed out\. Id: (?!(?!Shutdown)\S.{0,600}?timed out task names:\s*(?:/job:|\d))"
        r"(?P<id>[\w:/-]+)[^\n]{0,300}",
        rule="LOG001",
        says="a process waited at the barrier {id} until its timeout",
        fix="look at the processes that are still in their own code: py-spy dump --pid PID",
        proves_not="that the tasks that it lists are at fault: those that left well are listed where one "
        "of them raised and stays in its own shutdown",
        awaits=True,
        sample="DEADLINE_EXCEEDED: Barrier timed out. Id: Shutdown::0::1. This usually happens because "
        "a task triggered the barrier too early or too slowly.",
        source="its wording from the source of the coordination service",
    ),
    KnownMessage(
        key=TPU_WARNING,
        pattern=r"TPU backend initialization is taking more than (?P<seconds>[\d.]+) seconds\. Did you run "
        r"your "
        r"code on all TPU hosts",
        rule="JOIN001",
        says="JAX waits for the other hosts of the TPU slice: it was not started on all of them",
        fix="start the same program on every host of the slice: gcloud compute tpus tpu-vm ssh NAME "
        "--worker=all "
        "--command='python SCRIPT'; for this host alone: TPU_PROCESS_BOUNDS=1,1,1 TPU_VISIBLE_CHIPS=0",
        proves_not="which host is missing; another program that holds the TPU looks the same: "
        "sudo lsof -w /dev/accel* /dev/vfio/*",
        sample="/usr/lib/python3/dist-packages/jax/_src/xla_bridge.py:184: UserWarning: TPU backend "
        "initialization is taking more than 60.0 seconds. Did you run your code on all TPU hosts? See "
        "https://jax."
        "readthedocs.io/en/latest/multi_process.html for more information.\n  warnings.warn(",
        source="its wording from the source of JAX 0.4.14 to 0.10 (xla_bridge.py)",
    ),
    KnownMessage(
        key="Termination timeout for",
        pattern=r"Termination timeout for `[^\n]{0,400}?of (?P<seconds>\d+) seconds exceeded\. Exiting to "
        r"ensure a consistent program state\. Expected (?P<many>\d+) threads to join the rendezvous",
        rule="LOG001",
        says="not all {many} devices came to a collective of XLA within {seconds} s",
        fix="on CPUs: fewer devices a process (--xla_force_host_platform_device_count), more cores, or "
        "XLA_FLAGS=--xla_cpu_collective_call_terminate_timeout_seconds=600; on GPUs: "
        "dmesg -T | grep -i xid",
        proves_not="which device, nor that it hangs: on a host with too much to do it may only be late",
        sample="F1124 10:13:53.123456 4711 rendezvous.cc:112] [id=4] Termination timeout for `all-reduce` of "
        "40 seconds exceeded. Exiting to ensure a consistent program state. Expected 4 threads to join the "
        "rendezvous, but only 3 of them arrived on time.",
        source="its wording from the source of JAX 0.10 (XLA's rendezvous.cc)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if TPU_WARNING in exhibit.text and _went_on_after(exhibit.text, TPU_WARNING):
        heard = tuple(h for h in heard if TPU_WARNING not in h.speakers[0].line)
    return Testimony(heard=heard) if heard else None


def _went_on_after(text: str, warning: str) -> bool:
    """Return True if the program wrote more after its last warning, other than how it was interrupted."""
    later = text[text.rfind(warning) :].partition(TRACEBACK_HEAD)[0]
    return bool(progress_lines(later.split("\n")[1:]))


READER = LogReader(read=read_log)
