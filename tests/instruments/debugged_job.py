"""A job of PyTorch whose ranks run the servers of torch.distributed.debug, as `start_debug_server` does it.

That function needs packages that are not installed here, and listens on all addresses; this uses its parts.
"""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _WorkerServer
from torch.distributed.debug._frontend import DebugHandler, FrontendServer, Route, fetch_all
from torch.distributed.debug._store import tcpstore_client

FETCH_TIMEOUT_S = 3.0
BLOCKED_RANK = 1


class Page(DebugHandler):
    """One page of the server for all ranks."""

    def __init__(self, path: str, handler: str, template: str) -> None:
        self.path, self.handler, self.template = path, handler, template

    def routes(self) -> list[Route]:
        return [Route(self.path, self.answer)]

    def nav_links(self) -> list[object]:
        return []

    def answer(self, request: object) -> bytes:
        addresses, answers = fetch_all(self.handler, timeout=FETCH_TIMEOUT_S)
        frontend: FrontendServer = request.frontend
        return frontend.render_template(
            self.template, title=self.handler, addrs=addresses, resps=answers
        )


class Front(Page):
    def answer(self, request: object) -> bytes:
        return request.frontend.render_template("base.html")


def train(rank: int) -> None:
    for step in range(1_000_000):
        if rank == BLOCKED_RANK and step == 5:
            print("blocked", flush=True)
            time.sleep(600)
        dist.all_reduce(torch.ones(4))


def main() -> None:
    rank, front_port = int(os.environ["RANK"]), int(sys.argv[1])
    dist.init_process_group("gloo")
    server = _WorkerServer("127.0.0.1", 0)
    tcpstore_client().set(f"rank{rank}", f"http://127.0.0.1:{server.port}")
    dist.barrier()
    if rank == 0:
        frontend = FrontendServer(
            front_port,
            [
                Front("/", "", ""),
                Page("/stacks", "dump_traceback", "raw_resp.html"),
                Page("/fr_trace_json", "fr_trace_json", "json_resp.html"),
            ],
        )
        print("serving", frontend, flush=True)
    train(rank)


if __name__ == "__main__":
    main()
