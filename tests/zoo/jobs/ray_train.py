"""Ray Train on a cluster of two nodes on this host: two ranks train, then rank 1 sleeps. argv: a folder."""

import os
import sys
import time
from pathlib import Path

os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
# 15 by default, with which workers hardly ever run on a busy machine.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's own spelling
import ray
import torch
import torch.distributed as dist
from ray.cluster_utils import Cluster
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

FOLDER = Path(sys.argv[1])
WATCHED = {"ALLABOARD": "1", "ALLABOARD_RUN_DIR": str(FOLDER / "runs")}
# A busy machine takes minutes to import a framework in each worker.
PATIENCE = {"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "400"}


def train_loop_per_worker() -> None:
    for _ in range(20):
        dist.all_reduce(torch.ones(4))
        time.sleep(0.05)
    if dist.get_rank() == 1:
        time.sleep(3600)
    dist.all_reduce(torch.ones(4))


cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.add_node(num_cpus=2)
ray.init(address=cluster.address, runtime_env={"env_vars": WATCHED | PATIENCE})
print("nodes", len(ray.nodes()), flush=True)
TorchTrainer(
    train_loop_per_worker,
    # As many cores as a node has: each rank is on a node of its own.
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 2}),
    run_config=RunConfig(storage_path=str(FOLDER / "store")),
).fit()
