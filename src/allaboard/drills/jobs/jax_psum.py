"""A small JAX job over several processes that trains for real, and fails as --fault says.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import time
from pathlib import Path


def before_init(name):
    if name == "dies-before-init":
        raise FileNotFoundError("/data/train-00001.tfrecord")
    if name == "asleep-before-init":
        time.sleep(3600)


def wait_for_flag(flags):
    while not flags:
        pass


def before_step(name):
    """Stage the fault on the guilty rank in the middle of training."""
    if name == "jax-asleep":
        time.sleep(3600)
    elif name == "jax-stuck-in-python":
        wait_for_flag([])


def norms_of_all(split, replicated):
    """Compute a metric over all processes, of another size: many scripts do so on the chief only."""
    import jax
    import numpy as np

    rows = jax.make_array_from_process_local_data(split, np.ones((8, 8192), np.float32))
    jax.jit(lambda rows: rows.sum(0), out_shardings=replicated)(rows).block_until_ready()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--mark", help="written when the fault happens")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    rank = int(os.environ["JAX_PROCESS_ID"])
    size = int(os.environ["JAX_NUM_PROCESSES"])
    if rank == options.guilty:
        before_init(options.fault)

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        os.environ["JAX_COORDINATOR_ADDRESS"], size, rank, initialization_timeout=options.timeout
    )
    devices = jax.devices()
    if rank == options.guilty and options.fault == "jax-mesh-order":
        devices = devices[::-1]
        if options.mark:
            Path(options.mark).write_text(repr(time.time()))
    mesh = Mesh(np.array(devices), ("data",))
    split, replicated = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    weights = jax.device_put(jnp.zeros(64), replicated)

    @jax.jit
    def train_step(weights, images, labels):
        def loss(weights):
            return jnp.mean((images @ weights - labels) ** 2)

        value, gradient = jax.value_and_grad(loss)(weights)  # the mean over all processes: a psum
        return weights - 0.01 * gradient, value

    generator = np.random.default_rng(rank)
    for number in range(options.steps):
        if rank == options.guilty and number == options.at_step:
            if options.mark:
                Path(options.mark).write_text(repr(time.time()))
            before_step(options.fault)
            if options.fault == "jax-collectives-differ":
                norms_of_all(split, replicated)
        images = generator.normal(size=(8, 64)).astype(np.float32)
        labels = images.sum(1)
        if rank == options.guilty and options.fault == "jax-nan-loss" and number == options.at_step:
            labels[0] = np.nan
        images, labels = (
            jax.make_array_from_process_local_data(split, a) for a in (images, labels)
        )
        weights, value = train_step(weights, images, labels)
        value = float(value)
        time.sleep(0.005)
    if rank == 0:
        print(f"trained {options.steps} steps, loss {value:.4f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
