import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--coordinator", default=None)
    p.add_argument("--nproc", type=int)
    p.add_argument("--proc_id", type=int)
    return p.parse_args()


def describe():
    print("devices", jax.devices(), "backend", jax.default_backend())
    return jax.local_device_count()


def setup(args):
    n = describe()
    jax.distributed.initialize(args.coordinator, args.nproc, args.proc_id)
    return n


def loss_fn(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


def main():
    args = parse()
    setup(args)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    w = jnp.zeros((16, 1))
    tx = optax.sgd(0.1)
    state = tx.init(w)
    for _ in range(100):
        x = jnp.ones((8, 16))
        grads = jax.grad(loss_fn)(w, x, x[:, :1])
        updates, state = tx.update(grads, state)
        w = optax.apply_updates(w, updates)


if __name__ == "__main__":
    main()
