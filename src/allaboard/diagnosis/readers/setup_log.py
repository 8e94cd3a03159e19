"""Messages that name a mistake in how a job was set up, without an exception of their own."""

from __future__ import annotations

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Severity, Testimony

MESSAGES = (
    KnownMessage(
        key="Mismatched NCCL version detected",
        pattern=r"Mismatched NCCL version detected : rank (?P<one>\d+) version (?P<first>\d+) rank "
        r"(?P<two>\d+) version (?P<second>\d+)",
        rule="LOG013",
        says="ranks {one} and {two} use different versions of NCCL ({first} and {second})",
        fix="on each host: python -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'; "
        "install the same build everywhere; see that no LD_LIBRARY_PATH or LD_PRELOAD brings another libnccl",
        certainty=Certainty.CERTAIN,
        sample="node1:4242:4300 [0] init.cc:1021 NCCL WARN Mismatched NCCL version detected : rank 1 version "
        "22705 rank 0 version 22703",
        source="from the source of NCCL 2.19 to 2.30 (init.cc)",
    ),
    KnownMessage(
        key="Driver/library version mismatch",
        pattern=r"Failed to initialize NVML: Driver/library version mismatch",
        rule="LOG013",
        says="the NVIDIA driver's libraries were upgraded under the kernel module that is still loaded",
        fix="reboot this host, or unload the old module; cat /proc/driver/nvidia/version tells "
        "which one is loaded",
        certainty=Certainty.CERTAIN,
        sample="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144",
        source="from NVML's error strings (nvmlErrorString), driver 390 to 580",
    ),
    KnownMessage(
        key="Back-off restarting failed container",
        pattern=r"Back-off restarting failed container (?P<container>init-\S+) in pod (?P<pod>[\w.-]+)_",
        rule="JOIN001",
        says="pod {pod} waits in its init container {container}, which fails again and again: what it looks "
        "up or pulls is not there (the master's Service)",
        fix="kubectl logs {pod} -c {container} --previous; kubectl get pods,svc   # is the "
        "master's pod there?",
        proves_not="what is missing: the container's own log says it",
        sample="  Warning  BackOff  2m49s  kubelet  Back-off restarting failed container init-pytorch in pod "
        "job-worker-0_team(8d6860a7)",
        source="from the source of kubelet 1.27 to 1.33; init-pytorch is the training operator's",
    ),
    KnownMessage(
        key=" is waiting to start: ",
        pattern=r'container "(?P<container>[\w.-]+)" in pod "(?P<pod>[\w.-]+)" is waiting to start: '
        r"(?P<reason>[A-Z]\w+|trying and failing to pull image)",
        rule="JOIN001",
        says="pod {pod} has not started: its container {container} waits ({reason})",
        fix="kubectl describe pod {pod}   # its events: an image, a volume, or an init container that "
        "waits: kubectl get pods,svc",
        proves_not="that it failed: it may still start",
        sample='Error from server (BadRequest): container "pytorch" in pod "job-worker-0" is waiting to '
        "start: PodInitializing",
        source="from the source of kubelet 1.10 to 1.33 (containerLogs)",
    ),
    KnownMessage(
        key="Using IP address of  for node ",
        pattern=r"Using IP address of  for node (?P<host>\S{1,255})",
        rule="LOG013",
        says="DeepSpeed's launcher found no address of {host} (`hostname -I` printed none there), so that "
        "--master_addr is empty",
        fix="deepspeed --master_addr=$(getent hosts {host} | cut -d' ' -f1) ...   # the address at which all "
        "hosts reach {host}",
        certainty=Certainty.CERTAIN,
        explains=("EXIT003", "JOIN007"),
        sample="[INFO] [runner.py:417:main] Using IP address of  for node pod-0.job",
        source="its wording from the source of DeepSpeed 0.3 to 0.18 (launcher/runner.py)",
    ),
    KnownMessage(
        key="error: unrecognized arguments:",
        pattern=r"error: unrecognized arguments: [^\n]{0,200}--local[-_]rank\b",
        rule="LOG013",
        says="the script does not take --local-rank, which torch.distributed.launch gives it",
        fix="torchrun SCRIPT, and int(os.environ['LOCAL_RANK']) in it; or "
        "parser.add_argument('--local-rank', '--local_rank', type=int, default=0)",
        sample="train.py: error: unrecognized arguments: --local-rank=1",
        source="its wording from argparse, the option from PyTorch 1.0 to 2.13 (launch.py)",
    ),
    KnownMessage(
        key="timed out waiting for reservations",
        pattern=r"Exception: [Tt]imed out waiting for reservations to complete",
        rule="JOIN001",
        says="TensorFlowOnSpark's cluster did not come together: fewer executors than its cluster_size "
        "started their node in time",
        fix="compare cluster_size with the executors that Spark gave (spark.executor.instances, "
        "spark.task.cpus = spark.executor.cores, no dynamicAllocation), and read the executors' logs: yarn "
        "logs -applicationId ID",
        proves_not="which executor is missing, nor whether it was never given or failed",
        sample="Exception: timed out waiting for reservations to complete",
        source="its wording from the source of TensorFlowOnSpark 1.0 to 2.2 (reservation.py)",
    ),
    KnownMessage(
        key='"exit reason": "OOM',
        pattern=r'"node": "(?P<node>[^"\n]{1,255})", "exit reason": "OOM\w*"',
        rule="RES001",
        says="{node} was ended because it needed more memory than its pod may have",
        fix="kubectl describe pod {node}   # Last State: OOMKilled, and its limit; then raise "
        "resources.limits.memory, or need less: smaller batches, fewer loader workers",
        certainty=Certainty.CERTAIN,
        sample='[status_update][Running to Failed][{"from_state": "Running", "to_state": "Failed", "node": '
        '"job-edljob-worker-3-3", "exit reason": "OOM"}]',
        source="its wording from the source of DLRover 0.2 to 0.5 (master/monitor, common/constants.py)",
    ),
    KnownMessage(
        key="in the metadata while max iteration across the ranks is",
        pattern=r"on rank (?P<rank>\d{1,7}) found iteration \d+ in the metadata while max iteration across "
        r"the ranks is (?P<latest>\d+)",
        rule="LOG013",
        says="rank {rank} read another iteration of the checkpoint than the latest that a rank read "
        "({latest}): not all hosts read one folder, or not all ranks compared what they read",
        fix="cat CHECKPOINT/latest_checkpointed_iteration.txt   # on the host of rank {rank} and on others: "
        "one number? Put the checkpoint on a disk that all hosts share, or load one iteration by its number "
        "(--ckpt-step N); if {latest} is no iteration of this run, some ranks left that comparison out (they "
        "loaded from memory)",
        proves_not="which of them reads the right checkpoint",
        severity=Severity.WARNING,
        sample="WARNING: on rank 5 found iteration 300 in the metadata while max iteration across the ranks "
        "is 400, replacing it with max iteration.",
        source="its wording from the source of Megatron-LM 2 to Megatron-Core 0.15 (checkpointing.py)",
    ),
    KnownMessage(
        key="Cannot replicate if number of devices",
        # Where processes write into one another, no traceback is whole; an exception tells the same.
        pattern=r"Exception in device=\w{2,8}:\d{1,5}: Cannot replicate if number of devices "
        r"\((?P<own>\d+)\) is different from (?P<total>\d+)(?=[^\n]*Exception in device=)",
        rule="LOG013",
        says="each process has {own} XLA device, and the runtime counts {total}: they were used in the "
        "parent before its processes were spawned, or the runtime was set up for one process",
        fix="make no xm.xla_device(), and nothing on it, before xmp.spawn(f, nprocs=None), and spawn from a "
        "fresh process (restart a notebook's kernel)",
        explains=("LOG012",),
        sample="Exception in device=TPU:4: Cannot replicate if number of devices (1) is different from "
        "4Exception in device=TPU:5: Cannot replicate if number of devices (1) is different from 4",
        source="its wording from the source of torch_xla 1.5 to 1.13 (core/xla_model.py)",
    ),
)
SURVIVED = (
    "Driver/library version mismatch",
    " is waiting to start: ",
    '"exit reason": "OOM',
    "in the metadata while max iteration across the ranks is",
)
"""Keys of messages that are no reason to fail if the job trains on: some jobs need no GPU, a pod may start
later,
and one that ended may be started again."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    counted = [
        m for m in MESSAGES if m.key not in SURVIVED or not trains_on_after(exhibit.text, m.key, 1)
    ]
    heard = find_known_messages(exhibit, counted)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
