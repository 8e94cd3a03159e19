"""What YARN, managed training services and Google Cloud's TPUs write of a member that they ended."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Testimony, Who

MIN_STEPS_AFTER = 2
"""Lines about loss or steps after an end that show that the job went on."""
_REPLICA = r"The replica (?P<job>[a-z]{1,30}\d{0,3}?)[ -](?P<task>\d{1,6})"
_EXITED = re.compile(_REPLICA + r" exited with a non-zero status of (?P<code>\d{1,3})")
MAX_NAMED_REPLICAS = 4
"""Replicas that a sentence names; the others are counted."""
MESSAGES = (
    KnownMessage(
        key=" is running beyond ",
        pattern=r"Container \[pid=\d+,containerID=(?P<container>\w{1,100})"
        r"\] is running beyond (?P<kind>physical|virtual) memory limits\. Current usage: (?P<used>[\d.]+"
        r" ?[KMGT]?B) of (?P<limit>[\d.]+ ?[KMGT]?B)",
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
        key="returned non-zero exit status -",
        pattern=r"returned non-zero exit status -(?P<signal>[46789]|11)\b.{0,1000}?task_name:\s{1,3}\""
        r"(?P<job>[a-z]{1,20})-replica-(?P<task>\d{1,6})\"",
        rule="EXIT001",
        says="{job} {task} was killed by signal {signal}",
        fix="if it is 9: the memory of its machine (the job's page: memory utilization); then a larger "
        "machine type, or a smaller batch; else the native code's last lines in the log of {job} {task}",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT005"),
        sample="message: \"Command '['python', '-m', 'task']' returned non-zero exit status -9\"\n"
        'labels: {\nml.googleapis.com/task_name:  "worker-replica-0"',
        source="as the log viewer of Google Cloud shows what AI Platform writes",
    ),
    KnownMessage(
        key="executable file not found in $PATH",
        pattern=r"exec: \\{0,2}\"(?P<what>[^\"\\\n]{1,200})\\{0,2}\": "
        r"executable file not found in \$PATH",
        rule="LOG013",
        says="a container could not start: its command {what} is no program in its image",
        fix="give the program first, and what it runs after it: command: [python, -m, {what}]; or look for "
        "it in the image: docker run --rm --entrypoint sh IMAGE -c 'command -v {what}'",
        certainty=Certainty.CERTAIN,
        explains=("LOG012", "EXIT003"),
        sample='OCI runtime create failed: unable to start container process: exec: "trainer.task": '
        "executable file not found in $PATH: unknown",
        source="its wording from the source of Go (os/exec), in runc and containerd",
    ),
    KnownMessage(
        key="ExecuteUserScriptError",
        pattern=r"ExecuteUserScriptError:?\s{0,4}(?:\n?ExitCode (?P<code>-?\d{1,3}))?",
        rule="LOG012",
        says="SageMaker reports that the training script failed, and the script's own words are not in "
        "this log",
        fix="CloudWatch, log group /aws/sagemaker/TrainingJobs: the streams JOB/algo-1-..., JOB/algo-2-... "
        "of all hosts; if nothing stands there: the job's metric MemoryUtilization (a killed "
        "script says nothing)",
        sample='sagemaker-containers ERROR    ExecuteUserScriptError:\nCommand "/usr/bin/python -m rnn"',
        source="its wording from the source of sagemaker-containers 2 and sagemaker-training 3 to 4",
    ),
    KnownMessage(
        key="TPUPollingThread found TPU ",
        pattern=r"TPUPollingThread found TPU (?:b')?(?P<name>[\w.-]{1,80})'? in state (?P<state>(?!READY)"
        r"[A-Z_]{3,30}), and health",
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

VICTIM = KnownMessage(
    key="The replica ",
    pattern=r"The replica (?P<victim>[a-z]{1,30}\d{0,3}?[ -]\d{1,6}) exited with a non-zero status of "
    r"\d{1,3}(?:(?!The replica ).){0,1100}?(?P<why>(?:UnavailableError|AbortedError): [^\n]{1,60})",
    rule="EXIT005",
    says="{victim} ended because it lost another member of the job ({why})",
    fix="read the logs of the other replicas, of the master and the parameter servers (ps) first: which "
    "one ended before? gcloud ai custom-jobs stream-logs JOB",
    proves_not="which one it lost",
    explains=("EXIT003", "LOG012"),
    sample="The replica worker 2 exited with a non-zero status of 1. Termination reason: Error. Traceback "
    "(most recent call last): [...] UnavailableError: OS Error",
    source="as Google's AI Platform and Vertex AI write it",
)
"""Of a replica whose end its last words explain; `MESSAGES` have the bare end."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    counted = [m for m in MESSAGES if not trains_on_after(exhibit.text, m.key, MIN_STEPS_AFTER)]
    heard = _one_end(exhibit, find_known_messages(exhibit, counted))
    heard += find_known_messages(exhibit, (VICTIM,)) if heard else ()
    return Testimony(heard=heard) if heard else None


def _one_end(exhibit: Exhibit, heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return the messages with those of several replicas that ended alike as one."""
    ends = {
        (m["job"], int(m["task"])): m["code"] for m in _EXITED.finditer(exhibit.text)
    }  # several stand in one line
    bare_ends = [h for h in heard if h.bare_end]
    if len(ends) < 2 or len(set(ends.values())) > 1 or not bare_ends:
        return heard
    about = tuple(Who(job=job, index=task) for job, task in ends)
    names = ", ".join(who.name for who in about[:MAX_NAMED_REPLICAS])
    if len(about) > MAX_NAMED_REPLICAS:
        names += f" and {len(about) - MAX_NAMED_REPLICAS} more"
    joined = msgspec.structs.replace(
        bare_ends[0], says=f"{names} exited with code {next(iter(ends.values()))}", about=about
    )
    return (*(h for h in heard if not h.bare_end), joined)


READER = LogReader(read=read_log)
