"""Causes of exceptions that frameworks other than PyTorch raise where their members meet or communicate."""

from __future__ import annotations

from allaboard.analysis.failures.gpu_error_causes import Cause
from allaboard.facts.outcome import Retry

MEETING_ERROR_CAUSES = (
    Cause(
        # ps-lite's van.cc, in MXNet 0.9 to 1.9 and BytePS.
        pattern=r"van\.cc:\d+: Check failed: !(?:ip|interface)\.empty\(\):? ?failed to get (?:the )?"
        r"(?P<what>ip|interface)",
        says="found no address for ps-lite on its host: the interface in DMLC_INTERFACE, or any other than "
        "lo, "
        "has none ({what})",
        fix="ip -br address; echo $DMLC_INTERFACE   # on that host: export DMLC_INTERFACE=NAME of one with "
        "an "
        "IPv4 address that the other hosts reach, or DMLC_NODE_HOST=ADDRESS; in a container: --net=host",
        retry=Retry.NEVER,
    ),
    Cause(
        # A library's own wrapper around NCCL, as HugeCTR words it: the result, then the call.
        pattern=r"^(?!InternalError)[\w.]*(?:Error|Exception): [^\n]{0,80}?\bunhandled (?P<kind>system|cuda) "
        r"error\b.{0,200}?\bnccl[A-Z]\w+\(",
        says="failed in NCCL: unhandled {kind} error",
        fix="run once with NCCL_DEBUG=INFO: its WARN line tells the call that failed, on which host, with "
        "which device; a container: df -h /dev/shm, docker run --ipc=host or --shm-size=8g",
        vague=True,
    ),
    Cause(
        # distributed.comm.core of Dask 1 to 2026.
        pattern=r"^(?:OSError|TimeoutError): Timed out (?:during handshake while connecting|trying to "
        r"connect) "
        r"to '?(?P<protocol>tcp|tls|ucx|ws)://(?P<host>[\w.\[\]:-]{1,255}?):(?P<port>\d{1,5})'? after "
        r"(?P<limit>[\d.]+) ?s",
        says="nobody answered at {host} port {port} within {limit} s: Dask's scheduler, or one of its "
        "workers, "
        "was to listen there",
        fix="ss -ltnp | grep {port}   # on {host}: nothing? Start dask scheduler there, or read its log: "
        "did it "
        "end? 127.0.0.1 is each host itself: give all the scheduler's own address; from another host: "
        "nc -vz {host} {port}",
        own=False,
    ),
    Cause(
        # grpc/_channel.py of gRPC 1.10 to 1.70; its details come before the trace of the core.
        pattern=r"of RPC that terminated with:\s{1,40}status = StatusCode\.UNAVAILABLE\s{1,40}details = "
        r'"failed to connect to all addresses; last error: [^\n"]{0,80}?ipv[46]:(?P<host>[\w.%\[\]:-]{3,80}):'
        r"(?P<port>\d{1,5}): ",
        says="no server of gRPC could be reached at {host} port {port}",
        fix="ss -ltnp | grep {port}   # on {host}: nothing? Start the server, or read its log: did it "
        "fail or "
        "end? From another host: nc -vz {host} {port}; unset http_proxy https_proxy",
        own=False,
    ),
    Cause(
        pattern=r"of RPC that terminated with:\s{1,40}status = StatusCode\.UNAVAILABLE\s{1,40}details = "
        r'"failed to connect to all addresses"',
        says="no server of gRPC could be reached at the address that a process was given",
        fix="read the server's log: did it start before its clients, and listen at the address that they are "
        "given? nc -vz HOST PORT; unset http_proxy https_proxy",
        own=False,
        vague=True,
    ),
    Cause(
        # Ray 1.0 to 1.13 say no more than that.
        pattern=r"^RayActorError: The actor died unexpectedly before finishing this task\.\s*$",
        says="a worker process of Ray died, and the program that waited for it raised RayActorError",
        fix="read what that process wrote last: ray logs cluster worker-*.err; on its node: dmesg -T | "
        "grep -iE "
        "'killed process|oom', ray logs raylet.out -ip NODE_IP; in Kubernetes kubectl describe pod POD",
        own=False,
        vague=True,
    ),
    Cause(
        # torch_xla 1.5 to 1.13 (XRT, mesh_service.cc).
        pattern=r"Failed to retrieve mesh configuration: (?P<why>[^\n]{1,80}?)(?: \(\d+\))?(?:\n|$)",
        says="the processes of the TPU got no configuration from process 0, which serves it ({why}): it had "
        "ended or failed before",
        fix="read the log of process 0: how did it end? The first exception of all is the cause, and "
        "those of "
        "the other processes follow; is the TPU still there: gcloud compute tpus list",
        own=False,
    ),
    Cause(
        # torch_xla 1.5 to 1.13 (XRT, xrt_computation_client.cc).
        pattern=r"xrt_computation_client\.cc:\d+ ?: Check failed: default_device_target != "
        r"options_\.global_device_map\.end\(\)",
        says="found no device of its own in the configuration of XLA's old runtime (XRT_*): that of another "
        "host, of one core, or of a launcher around it",
        fix="env | grep -E '^(XRT|TPU|PJRT)_'; pip show torch_xla   # in that process: torch_xla 2 wants "
        "PJRT_DEVICE=TPU and no XRT_*; before, a TPU pod is started by torch_xla.distributed.xla_dist "
        "alone, and "
        "what it runs must not start a launcher again",
        retry=Retry.NEVER,
    ),
    Cause(
        # torch_xla.distributed.xla_dist 1.5 to 2.0.
        pattern=r"Fatal error code encountered in client=(?P<host>[\w.:-]{1,255}): code=143\b",
        says="the program on {host} was ended by SIGTERM (143) from outside, and xla_dist gave up: pkill, a "
        "second start or the TPU's own service ends it so",
        fix="ps -ef | grep xla_dist; gcloud compute tpus tpu-vm list   # who else starts or ends programs on "
        "this TPU, and is it PREEMPTED? Then the lines of {host} above: `Terminated` on all is one signal to "
        "all",
        own=False,
    ),
    Cause(
        pattern=r"Fatal error code encountered in client=(?P<host>[\w.:-]{1,255}): code=(?P<code>\d{1,3})\b",
        says="the program on {host} ended with exit code {code}, and xla_dist ended those on the other hosts",
        fix="read what {host} wrote before: its lines begin with its address",
        own=False,
        vague=True,
    ),
)
