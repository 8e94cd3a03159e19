"""A task of TensorFlow's kind that needs no framework: it joins the roll call, and binds its own port."""

import importlib
import json
import os
import socket

config = json.loads(os.environ["TF_CONFIG"])
workers, index = config["cluster"]["worker"], config["task"]["index"]
member = importlib.import_module("_allaboard_probe.member")
member.arrive(
    {
        "framework": "tensorflow",
        "call": "MultiWorkerMirroredStrategy",
        "rank": index,
        "world_size": len(workers),
        "job": "worker",
        "index": index,
        "cluster": {f"worker:{i}": address for i, address in enumerate(workers)},
        "origin": "TF_CONFIG",
        "local": True,
    }
)
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", int(workers[index].rpartition(":")[2])))
    server.listen()
    member.joined(True)
    print("listens", flush=True)
