"""Causes of exceptions that a framework raises below the user's line, as each version words them.

The wording is that of PyTorch 1.4 to 2.13, TensorFlow 1.12 to 2.21 and JAX 0.2 to 0.10 (XLA), and of the C
library's messages that they pass on.
"""

from __future__ import annotations

from allaboard.analysis.failures.gpu_error_causes import GPU_ERROR_CAUSES, Cause
from allaboard.analysis.failures.meeting_error_causes import MEETING_ERROR_CAUSES
from allaboard.facts.outcome import Retry

_NAME_ERRORS = (
    r"Name or service not known|Temporary failure in name resolution|No address associated with hostname"
    r"|nodename nor servname|getaddrinfo failed|No such host is known|[Nn]ame does not resolve"
)


CAUSES = (
    Cause(
        # fairseq's trainer compares the norm of the gradients on all ranks after each step.
        pattern=r"Fatal error: gradients are inconsistent between workers",
        says="the norms of the gradients differ between the ranks, as fairseq's trainer found: the ranks "
        "did not reduce the same gradients, or one of them has NaN",
        fix="read the table 'grad_norm across the workers' below it: nan everywhere is a loss that diverged "
        "(a lower learning rate, --fp16-init-scale, the batch at that step); numbers that differ are "
        "gradients that were not reduced (parameters without a gradient on some ranks: "
        "--find-unused-parameters, or --ddp-backend=legacy_ddp)",
        own=False,
    ),
    Cause(
        pattern=r"^UnexpectedStatusException: Error for Training job (?P<job>[\w-]{1,120}): "
        r"(?P<status>\w+)\. Reason: (?P<why>[^\n]{1,160})",
        says="the training job {job} ended on SageMaker ({status}: {why}); this process only waited for it",
        fix="aws logs tail /aws/sagemaker/TrainingJobs --log-stream-name-prefix {job}   # the exception "
        "stands there, a stream for each host (algo-1, algo-2); then allaboard diagnose on what it prints",
        own=False,
        vague=True,
    ),
    Cause(
        pattern=r"(?:Stop_waiting|wait_canceled) response is expected",
        says="the store of the job gave an answer that a store does not give: something else listens at "
        "MASTER_ADDR:MASTER_PORT, or the process that serves the store was ending",
        fix='echo "$MASTER_ADDR:$MASTER_PORT"; ss -ltnp | grep "$MASTER_PORT"   # on the host of rank 0: who '
        "listens there? An address, and a port that no other job uses, in both; then read the log of rank 0",
        own=False,
        vague=True,
    ),
    Cause(
        # NCCL's name of the error alone, as TensorFlow passes it on.
        pattern=r"^InternalError: (?:NCCL: )?unhandled (?P<kind>system|cuda) error",
        says="failed in NCCL: unhandled {kind} error",
        fix="run once with NCCL_DEBUG=INFO: its WARN line tells the call that failed, on which host, with "
        "which device; in TF_CONFIG each task must have an index of its own",
        vague=True,
    ),
    Cause(
        pattern=r"\[(?P<waiter>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId from "
        r"\[(?P<rank>\d+)\].*?got error: (?P<why>[^\n]*[Tt]ime(?:d )?[Oo]ut[^\n]{0,40})",
        says="rank {waiter} waited for rank {rank}, which was still in its own code (preparing data, for "
        "example) or gone, until the store's timeout",
        fix="read the log of rank {rank}; while it waits, on its host: py-spy dump --pid PID; raise "
        "init_process_group(timeout=) (Trainer: ddp_timeout), or prepare the data before the job",
        own=False,
    ),
    Cause(
        pattern=r"^KeyError: '(?P<name>SLURM_(?:PROCID|LOCALID|NODEID|NTASKS|NPROCS|STEP_\w+|STEPID"
        r"|TASK_PID|SRUN_\w+|JOB_ID|JOB_NODELIST|NODELIST|NNODES))'$",
        says="found no {name} in its environment: it runs in an allocation of Slurm or outside of it, and "
        "not in a step that srun started",
        fix="srun python SCRIPT   # inside the job (sbatch, salloc); or give all arguments: "
        "jax.distributed.initialize(coordinator_address=, num_processes=, process_id=)",
        retry=Retry.NEVER,
    ),
    Cause(
        # gloo's own words, whose file and line differ between versions.
        pattern=r"enforce fail at [^\n]{0,200}context\.cc:\d+\]\s*"
        r"rank < size\. (?P<rank>\d+) vs (?P<size>\d+)",
        says="claims rank {rank} in a world of {size}: ranks begin with 0",
        fix="echo $RANK $WORLD_SIZE   # on that host: a rank from 0 to the world size less one; Slurm's is "
        "$SLURM_PROCID",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^KeyError: '(?P<name>(?:OMPI_COMM_WORLD|OMPI_MCA|PMIX?|PALS|MPI)_\w+)'$",
        says="found no {name} in its environment: mpirun did not start it, or started it another way than "
        "the script expects",
        fix="mpirun -np N python SCRIPT   # of the MPI whose variables the script reads: mpirun --version",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"Unable to find (?:address|interface) for: (?P<name>\^\S+)",
        says="was given the interfaces '{name}', a list that only NCCL knows: gloo takes one name, and "
        "looked for an interface called so",
        fix="export GLOO_SOCKET_IFNAME=NAME   # on that host, one interface that the others reach: "
        "ip -br address",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"Unable to find (?:address|interface) for: (?P<name>[^\s^]\S*)",
        says="was told to use the interface {name} (GLOO_SOCKET_IFNAME), which its host does not have",
        fix="export GLOO_SOCKET_IFNAME=NAME   # on that host, one interface that the others reach: "
        "ip -br address",
    ),
    Cause(
        pattern=r"use_libuv was requested but PyTorch was buil[dt] without libuv",
        says="found no libuv in its build of PyTorch, and its store was to use it",
        fix="set USE_LIBUV=0 before the start (as builds for Windows have none), in the shell that starts it",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"host not found: |hostname of the client socket cannot be retrieved"
        r"|network addresses? of \(?(?P<name>[\w.-]+)[^\n]{0,60}cannot be retrieved",
        says="could not resolve the name in MASTER_ADDR on its host",
        fix='on that host: getent hosts "$MASTER_ADDR"   # no output: correct the name, DNS or /etc/hosts',
    ),
    Cause(
        pattern=_NAME_ERRORS,
        says="could not resolve the name of the host where the job meets (MASTER_ADDR, or the coordinator's "
        "address)",
        fix='on that host: getent hosts "$MASTER_ADDR"   # no output: correct the name, DNS or /etc/hosts',
        in_machinery=True,
    ),
    Cause(
        pattern=r"Address already in use|EADDRINUSE",
        says="found the port taken on which it was to listen",
        fix='on that host: ss -ltnp "sport = :$MASTER_PORT"   # end the program that holds it, or take '
        "another port",
        in_machinery=True,
        together="all wanted to listen on one port, which the job itself holds: more than one of its members "
        "takes itself for the first (rank 0, node 0)",
        fix_together="give each process a RANK of its own, and each launcher its own number: srun "
        "--ntasks-per-node=1 bash -c 'torchrun --node-rank=$SLURM_NODEID ...' (in single quotes: each node "
        "must expand it)",
    ),
    *GPU_ERROR_CAUSES,
    *MEETING_ERROR_CAUSES,
    Cause(
        pattern=r"OutOfRangeError: .{0,400}?End of (?:sequence|file)"
        r"|OutOfRangeError: [^\n]*(?:Queue|Queue '[^']*') is closed and has insufficient elements",
        says="ran out of input in the middle of a step or a collective",
        fix="dataset.repeat() with steps_per_epoch=, and the same number of batches on every worker",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"(?P<job>\w+) is not a valid task_type in the cluster_spec:\s*ClusterSpec\(\{"
        r"(?P<jobs>[^}]*)\}",
        says="got a TF_CONFIG whose cluster has no job '{job}'; it has {jobs}",
        fix="rename the job in TF_CONFIG's cluster, or the task's type, and check it: allaboard check",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"No such job in cluster: ['\"]?(?P<job>\w+)"
        r"|Job ['\"](?P<job2>\w+)['\"] was not defined in cluster"
        r"|Task (?P<task>\d+) was not defined in job"
        r"|Unable to find job ['\"]?(?P<job4>\w+)|(?P<job5>\w+) is not in the cluster_spec",
        says="got a cluster without its own task: {message}",
        fix="compare the cluster and the task in TF_CONFIG: allaboard check",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^Exception: (?:Duplicate (?:cluster node id|worker/task) |TFManager already started on "
        r"(?P<host>[\w.-]{1,253}))|No such file or directory: 'executor_id'",
        says="an executor of Spark got two nodes of TensorFlowOnSpark, or a task that its node "
        "does not run on: "
        "there are fewer executors than cluster_size, one holds several cores, or one was started anew",
        fix="as many executors as cluster_size, one task each: --num-executors N --conf spark.task.cpus=C "
        "--conf spark.executor.cores=C --conf spark.dynamicAllocation.enabled=false; a retry needs a "
        "fresh cluster; the first failure stands in the executors' logs: yarn logs -applicationId ID",
        own=False,
        vague=True,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^Exception: [Tt]imed out waiting for reservations to complete",
        says="TensorFlowOnSpark's cluster did not come together: fewer executors than its cluster_size "
        "started their node in time",
        fix="compare cluster_size with the executors that Spark gave (spark.executor.instances, "
        "spark.task.cpus = spark.executor.cores, no dynamicAllocation), and read the executors' logs: yarn "
        "logs -applicationId ID",
        own=False,
        vague=True,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^(?:RuntimeError|TimeoutError|Dist\w*Error): (?:\[[^\]]*\] ?)?"
        r"(?:[Ww]ait timeout after|[Tt]imed out after) 0 ?ms",
        says="gave the init no time at all: its timeout is 0",
        fix="pass a timeout above 0 there; in rpc.init_rpc it is the rpc_timeout of the backend's options: "
        "for calls without a limit pass timeout=0 to each rpc_sync and rpc_async instead",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^(?:RuntimeError|TimeoutError|timeout|Dist\w*Error|ConnectionError): (?:\[[^\]]*\] ?)?"
        r"(?:Socket Timeout|timed out$|connect\(\) timed out|[Ww]ait timeout|Timed? ?out waiting for)"
        r"|client socket has timed out",
        says="the store of the job did not answer in time: rank 0, or whoever serves it at "
        "MASTER_ADDR:MASTER_PORT, was not there",
        fix='read the log of rank 0; from this host: nc -vz "$MASTER_ADDR" "$MASTER_PORT"',
        own=False,
        vague=True,
        in_machinery=True,
    ),
    Cause(
        pattern=r"Failed to connect to client mesh master: (?P<host>[\w.-]+):(?P<port>\d+)",
        says="nobody answered at {host}:{port}, where the processes of the TPU meet: process 0 was not "
        "there, or the meeting was asked for outside of xmp.spawn",
        fix="call xm.rendezvous only inside of the function that xmp.spawn starts; read the log of process "
        "0; nc -vz {host} {port}",
        own=False,
    ),
    Cause(
        pattern=r"Failed to meet rendezvous '(?P<tag>[^']{1,80})': (?!Trying to connect an http1)"
        r"(?P<why>[^\n]{1,80}?)(?: \(\d+\))?(?:\n|$)",
        says="the meeting '{tag}' of the TPU's processes failed ({why}): the one that served it, process 0, "
        "had ended, or something else answers there",
        fix="read the log of process 0: how did it end? Every process must call the same rendezvous, as "
        "often",
        own=False,
    ),
    Cause(
        pattern=r"^TimeoutError: RPC call to (?P<call>\w+) timed out",
        says="a worker process of vLLM did not finish {call} in time: it is stuck, or gone",
        fix="read what the workers wrote before it; while it hangs: py-spy dump --pid PID of each "
        "(pgrep -af VLLM), then allaboard diagnose DUMP...",
        own=False,
        vague=True,
    ),
    Cause(
        pattern=r"NCCL communicator was aborted after a previous error",
        says="a collective of this rank had failed before, and its communicator was given up",
        fix="read the lines before it, of all ranks: the first error says which collective failed, and why",
        own=False,
        vague=True,
    ),
    Cause(
        # torchcomms: rank 0 tells the others that all have come to monitored_barrier.
        pattern=r"\[Rank 0\]: failed to ack ranks (?P<rank>\d+(?:, ?\d+)*) in monitoredBarrier",
        says="rank {rank} came to a monitored barrier, but went away before rank 0 could answer",
        fix="read the log of rank {rank}: how did it end?",
        own=False,
    ),
    Cause(
        # PyTorch's backend nccl2, from torchcomms.
        pattern=r"NCCLX? operation timed out$|Work timed out during finalize$",
        says="ranks waited in a collective until its timeout for a peer that did not come",
        fix="read the log of the rank that does not raise this; while it hangs, on each host: "
        "py-spy dump --pid PID",
        own=False,
        vague=True,
        in_machinery=True,
    ),
    Cause(
        pattern=r"Connection refused",
        says="nobody listened where the job was to meet when a member connected",
        fix='start rank 0 and read its log; from this host: nc -vz "$MASTER_ADDR" "$MASTER_PORT"',
        own=False,
        in_machinery=True,
    ),
    Cause(
        pattern=r"^(?:RuntimeError|ConnectionResetError|BrokenPipeError|ConnectionError|Dist\w*Error"
        r"|EOFError)\b[^\n]*(?:[Cc]onnection reset by peer|Broken pipe|[Cc]onnection (?:was )?closed"
        r"|failed to recv|unexpected EOF|got 0 bytes)",
        says="the connection to the store broke: the member that served it ended, or something else answers "
        "at MASTER_ADDR:MASTER_PORT",
        fix='read the log of rank 0 first; on its host: ss -ltnp "sport = :$MASTER_PORT"   # only rank '
        "0 of this job may listen there",
        own=False,
        in_machinery=True,
    ),
    Cause(
        pattern=r"^(?:Xla|Jax)RuntimeError: DEADLINE_EXCEEDED: Connect\(\) timed out",
        says="the coordinator (process 0) did not answer when this process connected",
        fix="read the log of process 0; compare coordinator_address in all of them, and try it from here: "
        "nc -vz HOST PORT",
        own=False,
    ),
    Cause(
        pattern=r"^InternalError: [^\n]*Collective Op +\S* ?has group_size (?P<one>\d+)"
        r" and group_key ?\S+ but that group has size (?P<two>\d+)",
        says="the workers count different numbers of devices: {one} here, {two} in the group that came first",
        fix="echo $TF_CONFIG; nvidia-smi -L   # on each host: the same cluster everywhere, and the same "
        "number of visible GPUs",
        own=False,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^(?:Xla|Jax)RuntimeError: DEADLINE_EXCEEDED",
        says="the coordinator (process 0), or a process that it waited for, did not answer in time",
        fix="read the log of process 0; see which of the num_processes has no log; compare "
        "coordinator_address in all of them",
        own=False,
        vague=True,
        in_machinery=True,
    ),
    Cause(
        pattern=r"^DataLossError: .{0,600}?(?:corrupted|truncated) record at (?P<place>\d+)",
        says="read a damaged record (at byte {place} of a TFRecord file), or a file that is no TFRecord",
        fix="try the files one by one: python -c 'import sys, tensorflow as tf; [sum(1 for _ in "
        "tf.data.TFRecordDataset(f)) for f in sys.argv[1:]]' FILES; then compare the file with its source "
        "(md5sum, gsutil hash): copy it again; or another compression_type=",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^UnimplementedError: (?:None)?\s*$|unknown service tensorflow\."
        r"|^UnimplementedError: [^\n]{0,80}(?:Method not found|not implemented on this server)",
        says="the server does not know a call of this client: mostly the two run different versions of "
        "TensorFlow",
        fix="python -c 'import tensorflow as tf; print(tf.__version__)'   # on the hosts of both: install "
        "the same version on all members",
        own=False,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^UnknownError: Could not start gRPC server",
        says="could not start its server of TensorFlow: mostly its port of the cluster is taken, also by "
        "a server that this very program (or TensorFlowOnSpark) has started for the task before",
        fix="on its host: ss -ltnp   # who holds the port of its task? The lines of gRPC before it say why; "
        "end that program, or start one server a task",
        vague=True,
    ),
    Cause(
        pattern=r"NaN loss during training",
        says="stopped because its loss was nan",
        fix="look at the batch of that step, and lower the learning rate; "
        "tf.debugging.enable_check_numerics() names the operation",
        vague=True,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^InvalidArgumentError: [^\n]*(?:explicit(?:ly)? (?:device specification"
        r"|assigned)[^\n]{0,20}?'?/job:(?P<wanted>\w+)[^\n]{0,200}?)available devices(?:: "
        r"| are \[ ?)/job:localhost/(?![^\n]*/job:(?!localhost))",
        says="asked its session for a device of the job '{wanted}', but the session is local: it was made "
        "without the address of this task's server",
        fix="tf.Session(server.target, config=config)   # or MonitoredTrainingSession(master=server.target), "
        "sv.prepare_or_wait_for_session(server.target), and use the session that it returns",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"^InvalidArgumentError: [^\n]*explicit(?:ly)? (?:device specification"
        r"|assigned to)[^\n]{0,20}?'?/job:(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)"
        r"[^\n]{0,200}?available devices(?=[^\n]*/job:)(?![^\n]*/job:(?P=job)"
        r"/(?:replica:\d+/)?task:(?P=task)/)",
        says="the session knows no {job} {task}, on which the graph places operations: it had not answered "
        "when the session began, or the cluster of this task does not have it",
        fix="read the log of {job} {task}; compare the cluster in TF_CONFIG (or --ps_hosts, --worker_hosts) "
        "and the session's device_filters with the graph's devices",
        own=False,
    ),
    Cause(
        pattern=r"^AbortedError: [^\n]*(?:Graph handle is not found|just restarted|has likely restarted)",
        says="a worker of the session was restarted while the session went on; the message does not name it",
        fix="collect the logs of all other tasks: allaboard diagnose LOG...   # the one that started twice",
        own=False,
    ),
    Cause(
        pattern=r"^UnavailableError|^(?:Xla|Jax)RuntimeError: UNAVAILABLE",
        says="the session lost a member that the message does not name",
        fix="collect the logs of all other tasks: allaboard diagnose LOG...   # the one that ended first is "
        "the cause",
        own=False,
    ),
)
