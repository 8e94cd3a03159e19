"""What Spark's driver writes while a job waits for executors that never come.

A training that starts all members at once needs as many free slots at once.
"""

from __future__ import annotations

from allaboard.analysis.log_ends.post_traceback_output import training_over_line, trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_SOURCE = "its wording from the source of Spark 2.4 to 4.0 (DAGScheduler, TaskSchedulerImpl)"
_SLOTS_FIX = (
    "the UI's Executors page (port 8080, or 4040 of the driver): how many are alive, with how many cores "
    "(GPUs)? Start the workers, or ask for fewer members: num_slots (MirroredStrategyRunner), num_proc "
    "(horovod.spark), cluster_size (TensorFlowOnSpark)"
)
BARRIER = KnownMessage(
    key="Barrier stage in job",
    pattern=r"Barrier stage in job \d+ requires (?P<want>\d+) slots, but only (?P<have>\d+) are available",
    rule="JOIN001",
    says="Spark starts no member: the barrier stage needs {want} slots at once, and the cluster has {have}",
    fix=_SLOTS_FIX,
    proves_not="that the executors failed: they may not have been asked for, or still start",
    sample="20/06/13 18:56:04 WARN DAGScheduler: Barrier stage in job 0 requires 4 slots, but only 0 are "
    "available. Will retry up to 40 more times",
    source=_SOURCE,
)
NO_RESOURCES = KnownMessage(
    key="Initial job has not accepted any resources",
    pattern=r"Initial job has not accepted any resources",
    rule="JOIN001",
    says="Spark starts no member: no executor with enough free cores and memory has come",
    fix=_SLOTS_FIX,
    proves_not="why: no worker registered, and more asked for than one has, look the same",
    sample="20/06/13 18:56:04 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your "
    "cluster UI to ensure that workers are registered and have sufficient resources",
    source=_SOURCE,
)
REFUSED = KnownMessage(
    key="SPARK-24819",
    pattern=r"SPARK-24819\]: Barrier execution mode does not allow run a barrier stage",
    rule="JOIN001",
    says="Spark refused the job: its barrier stage needs more slots at once than the cluster has",
    fix=_SLOTS_FIX,
    explains=("EXIT002", "LOG012"),
    sample="[SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires more "
    "slots than the total number of slots in the cluster currently.",
    source=_SOURCE,
)
TASK_FAILED = KnownMessage(
    key="finished unsuccessfully",
    pattern=r"barrier task ResultTask\(\d{1,9}, (?P<task>\d{1,7})\) finished unsuccessfully",
    rule="LOG012",
    says="task {task} of Spark's barrier stage failed, and the whole stage with it",
    fix="its exception stands below this line, if the log is whole; else the stderr of its executor: the "
    "UI's Stages page, yarn logs -applicationId ID",
    sample="Could not recover from a failed barrier ResultStage. Most recent failure reason: Stage failed "
    "because barrier task ResultTask(10, 1) finished unsuccessfully.",
    source=_SOURCE,
)
PYTHON_CRASHED = KnownMessage(
    key="Python worker exited unexpectedly",
    pattern=r"Python worker exited unexpectedly \(crashed\)",
    rule="EXIT001",
    says="the Python process in which Spark ran a task crashed or was killed; the EOFError below is its "
    "executor's, which read from it no more",
    fix="on the executor's host: dmesg -T | grep -iE 'killed process|segfault'   # memory? Then "
    "spark.executor.memoryOverhead, spark.executor.pyspark.memory; else "
    "spark.python.worker.faulthandler.enabled="
    "true shows the line; and the executor's stderr: yarn logs -applicationId ID",
    proves_not="whether it crashed or was killed for lack of memory",
    explains=("EXIT002", "LOG012", "EXIT005"),
    sample="23/10/17 23:13:08 ERROR PythonRunner: Python worker exited unexpectedly (crashed)",
    source="its wording from the source of Spark 2.0 to 4.0 (PythonRunner.scala)",
)
MIN_WAITS = 3
"""Times that Spark says so before it counts: executors take a while to come."""
_WENT_ON = ("Finished task ", "Starting task ")


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = find_known_messages(exhibit, (REFUSED, TASK_FAILED))[:1]
    if not heard and not trains_on_after(text, PYTHON_CRASHED.key, 1):
        heard = find_known_messages(exhibit, (PYTHON_CRASHED,))[:1]
    for message in (BARRIER, NO_RESOURCES):
        if heard or text.count(message.key) < MIN_WAITS:
            continue
        later_text = text[text.rfind(message.key) :]
        if training_over_line(text) or trains_on_after(text, message.key, 1):
            continue
        if not any(words in later_text for words in _WENT_ON):
            heard = find_known_messages(exhibit, (message,))[-1:]
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
