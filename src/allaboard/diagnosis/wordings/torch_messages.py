"""Known messages of PyTorch's distributed package."""

from __future__ import annotations

from itertools import starmap

from allaboard.analysis.log_messages import KnownMessage
from allaboard.diagnosis.wordings.nccl_id_messages import ID_MESSAGES
from allaboard.diagnosis.wordings.torch_desync_messages import DESYNC_MESSAGES
from allaboard.facts import Certainty, Severity

OVERDUE_WORDS = "Watchdog caught collective operation timeout"
STUCK_WATCHDOG = "watchdog got stuck for"
"""Words of NCCL's watchdogs about a collective that did not end, and about themselves."""
_RECORDED = "recorded, PyTorch 2.13.0 with gloo"
_DOCUMENT = "from the source of PyTorch's ProcessGroupNCCL, not recorded: it needs GPUs"
WAITING_IN_BARRIER = KnownMessage(
    key="Waiting in store based barrier",
    pattern=r"Waiting in store based barrier to initialize process group for (?:rank: \d+|\d+ seconds, rank: "
    r"\d+), key: \S+ \(world_size=(?P<size>\d+), (?:num_workers_joined|worker_count)=(?P<here>\d+)",
    rule="JOIN001",
    says="{here} of {size} members came to the end of init",
    fix="",
    # A healthy start waits too; only a count above the size is a fault.
    certainty=Certainty.UNKNOWN,
    sample="Waiting in store based barrier to initialize process group for rank: 0, key: "
    "store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)",
    source="its wording from the source of PyTorch 1.9 to 2.13",
)
_CONNECT_ERRNOS = (
    (
        "111|10061",
        "NET002",
        "is up, but nothing listened there",
        "start rank 0 on {host} first, and read its log: did it end?",
    ),
    (
        "113|101|10065|10051",
        "NET004",
        "is out of reach: the network has no route to it, or a firewall refuses",
        "on this host: getent ahosts {host}; ip route get ADDRESS. If several names or addresses stand for "
        "it, set MASTER_ADDR to the one that the other hosts reach (its full name, or ip -br address on "
        "{host}), and open the port",
    ),
    (
        "110|10060",
        "NET003",
        "did not answer: it is down, or a firewall drops the packets",
        "start rank 0 on {host}, and open the port {port} between the hosts",
    ),
)
"""Numbers of an errno (Linux's, and those of Windows), the rule that each means, and its texts."""


def _not_connected(numbers: str, rule: str, meaning: str, advice: str) -> KnownMessage:
    """Return the exception of a client that tried all addresses of rank 0, by the errno of the last try."""
    number = numbers.partition("|")[0]
    return KnownMessage(
        key="has failed to connect to any network address of",
        pattern=r"client socket has failed to connect to any network address of \((?P<host>[^,)]{1,255}), "
        rf"(?P<port>\d+)\)\.[^\n]{{0,300}}?\(errno: (?:{numbers}) - ",
        rule=rule,
        says=f"{{host}}:{{port}}, where rank 0 is to be met, {meaning}",
        fix=f"{advice}; from this host: nc -vz {{host}} {{port}}",
        proves_not="that rank 0 is missing: a wrong address looks the same",
        explains=("JOIN007", "LOG012"),
        sample="RuntimeError: The client socket has failed to connect to any network address of (n3, 9901). "
        f"The client socket has failed to connect to gn03.local:9901 (errno: {number} - why).",
        source="its wording from the source of PyTorch 1.11 to 2.3 (c10d/socket.cpp)",
    )


MESSAGES = (
    KnownMessage(
        key="clients joined",
        pattern=r"waiting for clients\. (?P<here>\d+)/(?P<size>\d+) clients joined",
        rule="JOIN001",
        says="the store of rank 0 counted {here} of {size} members before its timeout",
        fix="see which of the {size} ranks has no log, or never reached init_process_group",
        proves_not="which one: the store counts connections, it knows no ranks; a late one counts as absent",
        explains=("JOIN004",),
        sample="torch.distributed.DistStoreError: Timed out after 11 seconds waiting for clients. "
        "2/3 clients joined.",
        source=_RECORDED,
    ),
    KnownMessage(
        key="wait timeout after",
        pattern=r"(?<!\d, )(?<!got error: )wait timeout after (?P<ms>\d+)ms, keys: (?P<keys>\S+)",
        rule="JOIN004",
        says="a rank waited {ms} ms in init for what another was to write ({keys})",
        fix="see which rank has no log, or never reached init_process_group",
        proves_not="that the rank at the end of the key is missing: /default_pg/0//cpu//0/0 is waited "
        "for by all, whoever is absent",
        sample="torch.distributed.DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/0",
        source=_RECORDED,
    ),
    KnownMessage(
        key="store based barrier on rank",
        pattern=r"Timed out initializing process group in store based barrier on rank:? \d+, for key: \S+ "
        r"\(world_size=(?P<size>\d+), (?:num_workers_joined|worker_count)=(?P<here>\d+)",
        rule="JOIN001",
        says="{here} of {size} members came to the end of init before its timeout",
        fix="see which of the {size} ranks has no log, or never reached init_process_group",
        proves_not="which one: the barrier counts, it knows no ranks",
        sample="RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for "
        "key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
        source="its wording from the source of PyTorch 1.13 to 2.1",
    ),
    KnownMessage(
        key="Timed out waiting on barrier on rank",
        pattern=r"Timed out waiting on barrier on rank (?P<waiter>\d+), for key prefix: \S+ "
        r"\(world_size=(?P<size>\d+), missing_ranks=\[(?P<rank>\d+(?:, \d+)*)",
        rule="LOG001",
        says="rank {rank} did not come to a barrier of torchrun's hosts",
        fix="look at the torchrun with node rank {rank}: its log, or whether its workers still run",
        proves_not="that it failed: a slow one is missing too",
        awaits=True,
        sample="torch.distributed.DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: "
        "torchelastic.agent.barrier (world_size=2, missing_ranks=[1], timeout=300.0)",
        source="its wording from the source of PyTorch 2.5 to 2.13 (elastic/utils/store.py)",
    ),
    KnownMessage(
        key=" failed -- missing ranks: ",
        pattern=r"(?P<op>barrier|gather|all_gather) failed -- missing ranks: (?P<rank>\d+(?:, \d+)*)",
        rule="LOG001",
        says="rank {rank} did not come to a {op} over the store",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        proves_not="that it failed: a slow one is missing too",
        awaits=True,
        sample="RuntimeError: barrier failed -- missing ranks: 0, 2, wait timeout after 1000ms, keys: /a",
        source="its wording from the source of PyTorch 2.1 to 2.13 (c10d/control_collectives)",
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
    *starmap(_not_connected, _CONNECT_ERRNOS),
    KnownMessage(
        key="EADDRINUSE",
        pattern=r"failed to listen on any local network address\. port: (?P<port>\d+).*?EADDRINUSE",
        rule="NET005",
        says="port {port} was taken when rank 0 wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another MASTER_PORT",
        proves_not="who holds it: a second rank 0, an earlier job and another program look the same",
        explains=("JOIN007",),
        sample="torch.distributed.DistNetworkError: The server socket has failed to listen on any "
        "local network address. port: 29777, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use",
        source=_RECORDED,
    ),
    KnownMessage(
        key="errno: 98 - ",
        # In records of their own (PyTorch 1.11 to 2.3): each try, and then that all have failed.
        pattern=r"failed to bind to \S{1,200}?:(?P<port>\d{1,5}) \(errno: 98 - [^\n]{0,80}\n[^\n]{0,200}"
        r"The server socket has failed to listen on any local network address",
        rule="NET005",
        says="port {port} was taken when rank 0 wanted to listen there",
        fix="ss -ltnp 'sport = :{port}'   # who holds it? end that program, or take another MASTER_PORT",
        proves_not="who holds it: a second rank 0, an earlier job and another program look the same",
        explains=("JOIN007", "LOG010", "LOG012"),
        sample="[W socket.cpp:436] [c10d] The server socket has failed to bind to 0.0.0.0:29511 (errno: 98 - "
        "Address already in use).\n[E socket.cpp:472] [c10d] The server socket has failed to listen on any "
        "local network address.",
        source="its wording from the source of PyTorch 1.11 to 2.3 (c10d/socket.cpp)",
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
        explains=("JOIN007",),
        sample="RuntimeError: The server socket has failed to listen on any local network address. The "
        "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        source="its wording from the source of PyTorch 2.1",
    ),
    KnownMessage(
        key="cannot be retrieved",
        pattern=r"The IPv[46] network addresses of \((?P<host>[^,)/\s]+), (?P<port>\d+)\) cannot be "
        r"retrieved",
        rule="NET001",
        says="the name {host} of the meeting place does not resolve",
        fix="getent hosts {host}   # on this host; then correct MASTER_ADDR, the name service or /etc/hosts",
        sample="[W1121 12:29:11.541042612 socket.cpp:752] [c10d] The IPv4 network addresses of "
        "(no-such-host, 39499) cannot be retrieved (gai error: -2 - Name or service not known).",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="cannot be retrieved",
        pattern=r"The IPv[46] network addresses of \((?P<what>[^,)\n]*[/\s][^,)\n]*), \d+\) cannot be "
        r"retrieved",
        rule="NET001",
        says="the meeting place is {what}, which is no name of a host: mostly what a login script prints "
        "there (DeepSpeed asks the first host by ssh for its address), or an argument that slipped",
        fix="ssh FIRST_HOST hostname -I   # it must print addresses alone: let ~/.bashrc print nothing "
        "where no terminal is ([[ $- == *i* ]] || return); or give it: deepspeed --master_addr=ADDRESS, "
        "else MASTER_ADDR",
        sample="[W socket.cpp:601] [c10d] The IPv6 network addresses of (/root/env.bashrc, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key=OVERDUE_WORDS,
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), "
        r"OpType=(?P<op>\w+).*?Timeout\(ms\)=(?P<ms>\d+)",
        rule="LOG001",
        says="a rank waited {ms} ms in {op}, collective {number}, for a peer that did not come",
        fix="allaboard diagnose LOG... with the logs of all ranks: who does not write this, or writes "
        "another number? At the next run: TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1, "
        "then allaboard diagnose on the folder of TORCH_NCCL_DEBUG_INFO_TEMP_FILE; while it hangs, on each "
        "host: allaboard diagnose",
        proves_not="which peer: the rank whose watchdog speaks is a victim",
        awaits=True,
        sample="[rank2]:[E1121 12:29:11.541042612 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=133, OpType=ALLREDUCE, NumelIn=1024, "
        "NumelOut=1024, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
        source=_DOCUMENT,
    ),
    KnownMessage(
        key=STUCK_WATCHDOG,
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
    *ID_MESSAGES,
    *DESYNC_MESSAGES,
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
        key="order differs from that of the first iteration on rank ",
        pattern=r"(?:Forward|All-gather) order differs from that of the first iteration on rank "
        r"(?P<rank>\d{1,7})",
        rule="LOG003",
        says="FSDP gathers parameters on rank {rank} in another order than in its first iteration, and no "
        "longer checks that all ranks agree",
        fix="let every rank run the same modules in the same order in each forward pass: no branch on the "
        "rank or on its data, no validation on one rank alone; TORCH_DISTRIBUTED_DEBUG=DETAIL stops at the "
        "first collective that differs",
        proves_not="that the ranks differ from each other: if all change their order alike, it is harmless",
        severity=Severity.WARNING,
        sample="UserWarning: Forward order differs from that of the first iteration on rank 1. Collectives "
        "are unchecked and may give incorrect results or hang.",
        source="its wording from the source of PyTorch 1.11 to 2.13 (fsdp/_exec_order_utils.py)",
    ),
    KnownMessage(
        key="Detected mismatch between collectives on ranks",
        pattern=r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running "
        r"(?:inconsistent )?collective: (?P<what>[^\n]{0,200})",
        rule="LOG003",
        says="rank {rank} runs another collective than its peers",
        fix="compare the lines of the ranks' code: every rank must call the same collectives in the same "
        "order",
        proves_not="which side is right",
        sample="RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4])",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="Unexpected result ",
        pattern=r"Unexpected result (?P<what>nan|-?inf)(?P<name> on rank (?P<rank>\d+))?"
        r"[^\n]{0,80}\(message='(?P<why>[^'\n]{1,120})",
        rule="NUM005",
        says="Megatron found {what}{name}: {why}",
        fix="look at the batch of that step on that rank: a lower learning rate, the checkpoint before; is "
        "it "
        "reproducible (Megatron writes so after its reruns)? If only on one GPU, run without that node",
        proves_not="that the numbers of other ranks are good: each looks at its own before they communicate",
        sample="ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3 "
        "invocation #2 (message='found NaN in local grad norm for bucket #0 in backward pass')",
        source="its wording from the source of Megatron-LM 0.9 to 0.15 (rerun_state_machine.py)",
    ),
)
