"""Train an MLP on handwritten digits with JAX over several processes, data-parallel.

Where the coordinator is, how many processes there are and which one this is come from flags or
from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID; for process 0 of 2::

    JAX_COORDINATOR_ADDRESS=127.0.0.1:22000 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 \\
        python examples/jax_digits.py
"""

import argparse
import itertools
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Params = list[tuple[jax.Array, jax.Array]]


def parse_args() -> argparse.Namespace:
    env = os.environ.get
    parser = argparse.ArgumentParser(description="data-parallel JAX on digits")
    # argparse converts a default that is a string just as it converts a flag.
    parser.add_argument("--coordinator", default=env("JAX_COORDINATOR_ADDRESS"), help="host:port")
    parser.add_argument("--num-processes", type=int, default=env("JAX_NUM_PROCESSES"))
    parser.add_argument("--process-id", type=int, default=env("JAX_PROCESS_ID"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="per process")
    parser.add_argument("--lr", type=float, default=0.5)
    return parser.parse_args()


def init_params(sizes: tuple[int, ...]) -> Params:
    rng = np.random.default_rng(0)  # the same on every process
    return [
        (
            jnp.asarray(rng.normal(0, (2 / fan_in) ** 0.5, (fan_in, fan_out)), jnp.float32),
            jnp.zeros(fan_out),
        )
        for fan_in, fan_out in itertools.pairwise(sizes)
    ]


def forward(params: Params, x: jax.Array) -> jax.Array:
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss_fn(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    log_probs = jax.nn.log_softmax(forward(params, x))
    return -jnp.mean(jnp.take_along_axis(log_probs, y[:, None], axis=1))


@jax.jit
def train_step(params: Params, x: jax.Array, y: jax.Array, lr: float) -> tuple[Params, jax.Array]:
    # x and y are spread over the processes, and the mean in the loss runs over all of them, so
    # the compiler puts the all-reduce of the gradients here by itself.
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss


def main() -> None:
    args = parse_args()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # only matters on CPUs
    jax.distributed.initialize(args.coordinator, args.num_processes, args.process_id)
    rank, processes = jax.process_index(), jax.process_count()
    print(f"process {rank} of {processes} is ready, {jax.device_count()} devices", flush=True)

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        (digits.data / 16.0).astype(np.float32), digits.target, test_size=0.2, random_state=0
    )
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, replicated = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    params = jax.device_put(init_params((64, 128, 10)), replicated)

    # The steps are counted from the global batch, so every process makes the same number.
    global_batch = args.batch_size * processes
    steps = len(train_x) // global_batch
    shuffle = np.random.default_rng(0)
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        order = shuffle.permutation(len(train_x))  # the same on every process
        total = 0.0
        for step in range(steps):
            batch = order[step * global_batch : (step + 1) * global_batch][rank::processes]
            x = jax.make_array_from_process_local_data(split, train_x[batch])
            y = jax.make_array_from_process_local_data(split, train_y[batch])
            params, loss = train_step(params, x, y, args.lr)
            total += float(loss)
        if rank == 0:
            print(f"epoch {epoch:3d}  loss {total / steps:.4f}", flush=True)

    # Every process holds all parameters, so each can score the whole (small) test set by itself.
    local_params = jax.tree.map(lambda p: p.addressable_data(0), params)
    right = np.argmax(forward(local_params, test_x), axis=1) == test_y
    if rank == 0:
        seconds = time.perf_counter() - start
        print(f"test accuracy {right.mean():.3f} after {seconds:.1f} s", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
