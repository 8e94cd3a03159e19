"""A small JAX job over several processes that trains with pmap, and fails as --fault says.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import time
from pathlib import Path


def before_step(name):
    """Stage the fault on the guilty rank in the middle of training."""
    if name == "jax-extra-sync":
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("only here")


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

    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        os.environ["JAX_COORDINATOR_ADDRESS"],
        int(os.environ["JAX_NUM_PROCESSES"]),
        rank,
        initialization_timeout=options.timeout,
    )

    def train_step(weights, images):
        gradient = jax.grad(lambda w: jnp.mean((images @ w - images.sum(1)) ** 2))(weights)
        return weights - 0.01 * jax.lax.pmean(gradient, "replicas")

    mapped = jax.pmap(train_step, axis_name="replicas")
    devices = jax.local_device_count()
    weights = jnp.zeros((devices, 64))
    generator = np.random.default_rng(rank)
    for number in range(options.steps):
        if rank == options.guilty and number == options.at_step:
            if options.mark:
                Path(options.mark).write_text(repr(time.time()))
            before_step(options.fault)
        weights = mapped(weights, generator.normal(size=(devices, 8, 64)).astype(np.float32))
        time.sleep(0.005)
    if rank == 0:
        print(f"trained {options.steps} steps, weights {float(weights.sum()):.4f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
