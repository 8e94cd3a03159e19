"""The roll call through PyTorch's TCPStore (libuv): rank 0 keeps the store, waits until all have counted
themselves, reads what each has told, and gives the verdict. ``rollcall_store.py SIZE WAY``; where WAY is
"links", it first gives everybody the addresses to try, and reads what each has met there.
"""

import json
import resource
import sys
import time

from torch.distributed import TCPStore  # type: ignore[attr-defined]

from allaboard.analysis.roll_call.link_probe_schedule import probe_targets

HERE = "127.0.0.1:1"
"""Where every simulated host is tried."""


def counted(store: TCPStore, counter: str, keys: list[str]) -> list[bytes]:
    """What is under these keys, once so many have counted themselves."""
    while store.add(counter, 0) < len(keys):
        time.sleep(0.01)
    return list(store.multi_get(keys))


def main() -> None:
    size = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, use_libuv=True)
    print(json.dumps({"port": store.port}), flush=True)
    sys.stdin.readline()
    began = time.process_time()
    ranks = range(1, size)
    told = counted(store, "count", [f"member/{rank}" for rank in ranks])
    full = time.monotonic()
    assert all(told)
    if sys.argv[2] == "links":
        lists = [json.dumps([(f"h{i}", HERE) for i in probe_targets(rank, size)]) for rank in ranks]
        store.multi_set(  # type: ignore[attr-defined]
            [f"try/{rank}" for rank in ranks], lists
        )
        assert all(counted(store, "count of tried", [f"tried/{rank}" for rank in ranks]))
    store.set("verdict", "all aboard")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = {
        "full": full,
        "decided": time.monotonic(),
        "cpu": time.process_time() - began,
        "mb": most / 1024,
        "at_start_mb": before / 1024,
    }
    print(json.dumps(said), flush=True)
    time.sleep(20)


if __name__ == "__main__":
    main()
