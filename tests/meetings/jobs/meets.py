"""A job of two ranks that meet in the way that its arguments say, and add up a number."""

import json
import multiprocessing
import os
import sys


def torch(told):
    import torch
    import torch.distributed as dist

    named = {}
    if "rank" in told:
        named = {"rank": told["rank"], "world_size": told["size"]}
    if "store" in told:
        host, _, port = told["store"].rpartition(":")
        named["store"] = dist.TCPStore(host, int(port), told["size"], told["rank"] == 0)
    elif "file_store" in told:
        named["store"] = dist.FileStore(told["file_store"], told["size"])
    elif "method" in told:
        named["init_method"] = told["method"]
    dist.init_process_group("gloo", **named)
    number = torch.ones(1)
    dist.all_reduce(number)
    total = number.item()
    dist.destroy_process_group()
    return total


def jax(told):
    import jax
    from jax.experimental.multihost_utils import process_allgather

    if "address" in told:
        jax.distributed.initialize(
            told["address"],
            told["size"],
            told["rank"],
            coordinator_bind_address=told["bind"] if told["rank"] == 0 else None,
        )
    else:
        named = {}
        if told.get("variables"):  # JAX has read its own variables when it was imported
            named = {
                "coordinator_address": os.environ["JAX_COORDINATOR_ADDRESS"],
                "num_processes": int(os.environ["JAX_NUM_PROCESSES"]),
                "process_id": int(os.environ["JAX_PROCESS_ID"]),
            }
        jax.distributed.initialize(**named)
    return float(process_allgather(jax.numpy.ones(1)).sum())


def tensorflow(told):
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import tensorflow as tf

    resolver = None
    if "resolver" in told:
        config = json.loads(told["resolver"])
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(config["cluster"]),
            task_type=config["task"]["type"],
            task_id=config["task"]["index"],
            rpc_layer="grpc",
        )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)

    @tf.function
    def add():
        one = strategy.run(lambda: tf.ones([]))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, one, axis=None)

    return float(add())


def meet(framework, told):
    os.environ.update(told.get("variables", {}))
    total = {"torch": torch, "jax": jax, "tensorflow": tensorflow}[framework](told)
    assert total == told.get("size", 2), total
    print("all added up", flush=True)


def main():
    framework, told = sys.argv[1], json.loads(sys.argv[2])
    if "spawned" not in told:
        meet(framework, told)
        return
    # As many scripts do: a process for each device of this host, started with the number of the host.
    spawn = multiprocessing.get_context("spawn")
    ranks = [
        spawn.Process(target=meet, args=(framework, dict(told, rank=rank)))
        for rank in told["spawned"]
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(any(rank.exitcode for rank in ranks))


if __name__ == "__main__":
    main()
