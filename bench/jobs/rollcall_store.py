"""The same roll call through PyTorch's TCPStore (libuv): rank 0 keeps the store, waits until all have
counted themselves, reads what each has told, and gives the verdict. ``rollcall_store.py SIZE``."""

import json
import resource
import sys
import time

from torch.distributed import TCPStore


def main() -> None:
    size = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, use_libuv=True)
    print(json.dumps({"port": store.port}), flush=True)
    sys.stdin.readline()
    began = time.process_time()
    while store.add("count", 0) < size - 1:
        time.sleep(0.01)
    full = time.monotonic()
    told = store.multi_get([f"member/{rank}" for rank in range(1, size)])
    assert len(told) == size - 1 and all(told)
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
