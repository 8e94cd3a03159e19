"""What YARN, managed training services and Google Cloud's TPUs write of a member that they ended."""

from __future__ import annotations

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Testimony

MIN_STEPS_AFTER = 2
"""Lines about loss or steps after an end that show that the job went on."""
_REPLICA = r"The replica (?P<job>[a-z]{1,30}\d{0,3}?)[ -](?P<task>\d{1,6})"
MESSAGES = (
    KnownMessage(
        key=" is running beyond ",
        pattern=r"Container \[pid=\d+,containerID=(?P<container>\w{1,100})\] is running beyond "
        r"(?P<kind>physical|"
        r"virtual) memory limits\. Current usage: (?P<used>[\d.]+ ?[KMGT]?B) of (?P<limit>[\d.]+ "
        r"?[KMGT]?B)",
        rule="RES001",
        says="YARN ended the container {container}: it used {used} of its {limit} of {kind} memory",
        fix="yarn logs -applicationId ID -containerId {container}   # which task it was; then more memory "
        "for it (tony.worker.memory, spark.executor.memoryOverhead, --executor-memory), or a smaller batch",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT005", "EXIT001"),
        sample="Container [pid=12345,containerID=container_e04_1548_0012_01_000004] is running beyond "
        "physical memory limits. Current usage: 8.1 GB of 8 GB physical memory used; 10.1 GB of 16.8 GB "
        "virtual memory used. Killing container.",
        source="its wording from the source of Hadoop 2.2 to 3.3 (ContainersMonitorImpl)",
    ),
    KnownMessage(
        key="Lost executor ",
        pattern=r"Lost executor (?P<executor>\d{1,7}) on (?P<host>[\w.-]{1,253}): Container "
        r"killed by YARN for "
        r"exceeding [\w ]{0,20}limits\. (?P<used>[\d.]+ ?[KMGT]?B) of (?P<limit>[\d.]+ ?[KMGT]?B)",
        rule="RES001",
        says="YARN killed Spark's executor {executor} on {host}: it used {used} of its {limit} of memory",
        fix="spark-submit --conf spark.executor.memoryOverhead=4g   # what TensorFlow and Horovod use is "
        "outside of the JVM's heap: more overhead, fewer tasks an executor, or a smaller batch",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT005", "EXIT001"),
        sample="ERROR YarnScheduler: Lost executor 3 on node-b: Container killed by YARN for exceeding "
        "memory limits. 5.5 GB of 5.5 GB physical memory used. Consider boosting "
        "spark.yarn.executor.memoryOverhead.",
        source="its wording from the source of Spark 1.5 to 3.5 (YarnAllocator)",
    ),
    KnownMessage(
        key="The replica ",
        pattern=_REPLICA + r" ran out-of-memory and exited",
        rule="RES001",
        says="{job} {task} ran out of the memory of its machine, and was ended",
        fix="a machine type with more memory for the {job} pool, a smaller batch, or fewer loader processes; "
        "then read the log of {job} {task} around its end",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT005", "EXIT001"),
        sample="The replica worker 2 ran out-of-memory and exited with a non-zero status of 9(SIGKILL).",
        source="as Google's AI Platform and Vertex AI write it",
    ),
    KnownMessage(
        key="The replica ",
        pattern=_REPLICA + r" exited with a non-zero status of (?P<code>\d{1,3})",
        rule="EXIT003",
        says="{job} {task} exited with code {code}",
        fix="read the log of {job} {task}: gcloud ai custom-jobs stream-logs JOB, or the job's logs filtered "
        "by that task",
        certainty=Certainty.CERTAIN,
        bare_end=True,
        sample="The replica workerpool1-0 exited with a non-zero status of 1. Termination reason: Error.",
        source="as Google's AI Platform and Vertex AI write it",
    ),
    KnownMessage(
        key="TPUPollingThread found TPU ",
        pattern=r"TPUPollingThread found TPU (?:b')?(?P<name>[\w.-]{1,80})'? in state "
        r"(?P<state>(?!READY)[A-Z_]{3,30}"
        r"), and health",
        rule="EXIT010",
        says="Google Cloud took the TPU {name} away: it is {state}",
        fix="gcloud compute tpus describe {name}   # a preempted one: delete and create it, then start again "
        "from the last checkpoint",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT005"),
        sample="WARNING:tensorflow:TPUPollingThread found TPU b'tpu-1' in state PREEMPTED, and "
        "health HEALTHY.",
        source="its wording from the source of TensorFlow 1.12 to 2.21 (tpu/preempted_hook.py)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    counted = [m for m in MESSAGES if not trains_on_after(exhibit.text, m.key, MIN_STEPS_AFTER)]
    heard = find_known_messages(exhibit, counted)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
