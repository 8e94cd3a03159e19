"""PyTorch's own words: c10d's stores, the watchdog of NCCL's process group."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_RECORDED = "recorded, PyTorch 2.13.0 with gloo"
_DOCUMENT = "from the source of PyTorch's ProcessGroupNCCL, not recorded: it needs GPUs"

MESSAGES = (
    KnownMessage(
        key="clients joined",
        pattern=r"waiting for clients\. (?P<here>\d+)/(?P<size>\d+) clients joined",
        rule="JOIN001",
        says="the store of rank 0 counted {here} of {size} members before its timeout",
        fix="see which of the {size} ranks has no log, or never reached init_process_group",
        proves_not="which one: the store counts connections, it knows no ranks; a late one counts "
        "as absent",
        sample="torch.distributed.DistStoreError: Timed out after 11 seconds waiting for clients. "
        "2/3 clients joined.",
        source=_RECORDED,
    ),
    KnownMessage(
        key="wait timeout after",
        pattern=r"wait timeout after (?P<ms>\d+)ms, keys: (?P<keys>\S+)",
        rule="JOIN004",
        says="a rank waited {ms} ms in init for what another was to write ({keys})",
        fix="see which rank has no log, or never reached init_process_group",
        proves_not="that the rank at the end of the key is missing: /default_pg/0//cpu//0/0 is waited "
        "for by all, whoever is absent",
        sample="torch.distributed.DistStoreError: wait timeout after 10000ms, keys: "
        "/default_pg/0//cpu//0/0",
        source=_RECORDED,
    ),
    KnownMessage(
        key="store based barrier on rank",
        pattern=r"Timed out initializing process group in store based barrier on rank:? \d+, for key: \S+ "
        r"\(world_size=(?P<size>\d+), (?:num_workers_joined|worker_count)=(?P<here>\d+)",
        rule="JOIN001",
        says="{here} of {size} members came to the end of init before its timeout",
        fix="see which of the {size} ranks has no log, or never reached init_process_group",
        proves_not="which one: the barrier counts, it knows no ranks; a count above the size is that of an "
        "earlier run's file or store",
        sample="RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for "
        "key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
        source="its wording from the source of PyTorch 1.13 to 2.1",
    ),
    KnownMessage(
        key="client socket has timed out",
        pattern=r"client socket has timed out after \d+m?s while trying to connect to "
        r"\((?P<host>[^,)]+), (?P<port>\d+)\)",
        rule="JOIN007",
        says="nobody answered at {host}:{port}, where rank 0 is to be met",
        fix="start rank 0; if it runs, compare its MASTER_ADDR and MASTER_PORT with {host}:{port}, "
        "and try from here: nc -vz {host} {port}",
        proves_not="that rank 0 is missing: a wrong address and a firewall look the same",
        sample="[E1121 12:29:16.169128272 socket.cpp:1028] [c10d] The client socket has timed out "
        "after 10000ms while trying to connect to (127.0.0.1, 39499).",
        source=_RECORDED,
    ),
    KnownMessage(
        key="EADDRINUSE",
        pattern=r"failed to listen on any local network address\. port: (?P<port>\d+).*?EADDRINUSE",
        rule="NET005",
        says="port {port} was taken when rank 0 wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another MASTER_PORT",
        proves_not="who holds it: a second rank 0, an earlier job and another program look the same",
        sample="torch.distributed.DistNetworkError: The server socket has failed to listen on any "
        "local network address. port: 29777, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use",
        source=_RECORDED,
    ),
    KnownMessage(
        key="errno: 98",
        # Alone it is a warning: the next address may be free.
        pattern=r"failed to listen on any local network address\.[^\n]{0,300}failed to bind to "
        r"\S{1,200}?:(?P<port>\d{1,5}) \(errno: 98",
        rule="NET005",
        says="port {port} was taken when rank 0 wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another MASTER_PORT",
        proves_not="who holds it: a second rank 0, an earlier job and another program look the same",
        sample="RuntimeError: The server socket has failed to listen on any local network address. The "
        "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        source="its wording from the source of PyTorch 2.1",
    ),
    KnownMessage(
        key="cannot be retrieved",
        pattern=r"The IPv[46] network addresses of \((?P<host>[^,)]+), (?P<port>\d+)\) cannot be "
        r"retrieved",
        rule="NET001",
        says="the name {host} of the meeting place does not resolve",
        fix="getent hosts {host}   # on this host; then correct MASTER_ADDR, the name service or /etc/hosts",
        sample="[W1121 12:29:11.541042612 socket.cpp:752] [c10d] The IPv4 network addresses of "
        "(no-such-host, 39499) cannot be retrieved (gai error: -2 - Name or service not known).",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="Watchdog caught collective operation timeout",
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), "
        r"OpType=(?P<op>\w+).*?Timeout\(ms\)=(?P<ms>\d+)",
        rule="LOG001",
        says="a rank waited {ms} ms in {op}, collective {number}, for a peer that did not come",
        fix="compare the ranks' collectives: allaboard diagnose on the folder of "
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE; the rank with the lowest number is the one to look at",
        proves_not="which peer: the rank whose watchdog speaks is a victim",
        awaits=True,
        sample="[rank2]:[E1121 12:29:11.541042612 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=133, OpType=ALLREDUCE, NumelIn=1024, "
        "NumelOut=1024, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="watchdog got stuck for",
        pattern=r"ProcessGroupNCCL's watchdog got stuck for (?P<seconds>\d+) seconds",
        rule="LOG010",
        says="a call of CUDA or NCCL did not come back for {seconds} s in a rank's watchdog, which ended the "
        "rank",
        fix="look at that rank's GPU: nvidia-smi; dmesg -T | grep -i xid; while it hangs: "
        "py-spy dump --native --pid PID",
        proves_not="that the GPU is broken: a thread that holds the GIL inside a call of CUDA, and "
        "a peer that has gone, look the same",
        sample="[rank2]:[E1124 10:20:13.523456789 ProcessGroupNCCL.cpp:1375] [PG ID 0 PG GUID 0(default_pg) "
        "Rank 2] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring "
        "enqueued collectives.",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="store->get(",
        pattern=r"\[(?P<waiter>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId from "
        r"\[(?P<rank>\d+)\] via c10d key-value store by key '[^'\n]{0,80}', but store->get\('[^'\n]{0,80}'\) "
        r"got error: (?P<why>[^\n]{0,40}[Tt]ime(?:d )?[Oo]ut)",
        rule="EXIT005",
        says="rank {waiter} waited for rank {rank}, which was still in its own code or gone, until the "
        "store's timeout ({why})",
        fix="read the log of rank {rank}; while it waits, on its host: py-spy dump --pid PID; raise "
        "init_process_group(timeout=) (Trainer: ddp_timeout), or prepare the data before the job",
        proves_not="that rank {rank} failed: preparing data for longer than the timeout looks the same",
        sample="[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and "
        "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got "
        "error: Socket Timeout",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="store->get(",
        pattern=r"retrieving ncclUniqueId from \[(?P<rank>\d+)\] via c10d key-value store by key "
        r"'[^'\n]{0,80}', but store->get\('[^'\n]{0,80}'\) got error: "
        r"(?P<why>(?![^\n]{0,40}[Tt]ime(?:d )?[Oo]ut)[^\n]{1,120})",
        rule="EXIT005",
        says="rank {rank}, or the store, was gone when another rank asked for NCCL's id ({why})",
        fix="read the log of rank {rank} first: why it ended, or never came to its first collective",
        proves_not="that it began there: where the store's host ends, all ranks write this",
        sample="[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and "
        "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got "
        "error: Connection reset by peer",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key="exited unexpectedly",
        pattern=r"DataLoader worker \(pid\(s\) (?P<pids>[\d, ]+)\) exited unexpectedly",
        rule="EXIT007",
        says="worker processes of a DataLoader died (pid {pids})",
        fix="look for an out-of-memory kill (dmesg -T | grep -i killed) and for room in /dev/shm "
        "(df -h /dev/shm); num_workers=0 shows an exception in the dataset itself",
        proves_not="why: the loader sees only that they are gone",
        sample="RuntimeError: DataLoader worker (pid(s) 4321, 4322) exited unexpectedly",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="nsufficient shared memory",
        pattern=r"Unexpected bus error encountered in worker\. This might be caused by insufficient "
        r"shared memory",
        rule="RES004",
        says="a DataLoader's worker found no room in /dev/shm",
        fix="df -h /dev/shm; in a container give it more (docker run --shm-size=8g, or --ipc=host; in "
        "Kubernetes an emptyDir of medium Memory at /dev/shm); or fewer workers",
        sample="ERROR: Unexpected bus error encountered in worker. This might be caused by "
        "insufficient shared memory (shm).",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="failed to pass monitoredBarrier",
        pattern=r"Ranks? (?P<rank>[\d, ]+) failed to pass monitoredBarrier",
        rule="LOG001",
        says="rank {rank} did not come to the monitored barrier",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        sample="RuntimeError: Rank 0 in timeout: Ranks 1 failed to pass monitoredBarrier in 5000 ms",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="Detected mismatch between collectives on ranks",
        pattern=r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running "
        r"collective: (?P<what>[^\n]{0,200})",
        rule="LOG003",
        says="rank {rank} runs another collective than its peers",
        fix="compare the lines of the ranks' code: every rank must call the same collectives in the same "
        "order",
        proves_not="which side is right",
        sample="RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4])",
        source="its wording from the source of PyTorch 2.13.0",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
