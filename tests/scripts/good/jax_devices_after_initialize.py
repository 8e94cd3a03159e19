import argparse

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils as mhu


class CheckpointWriter:
    def __init__(self, folder):
        self.folder = folder
        self.primary = jax.process_index() == 0

    def write(self, step, params):
        whole = mhu.process_allgather(params, tiled=True)
        if not self.primary:
            return
        with open(f"{self.folder}/{step}.npy", "wb") as f:
            jnp.save(f, whole)


def describe():
    print("devices", jax.devices())


def setup(args):
    jax.distributed.initialize(args.coordinator, args.nproc, args.proc_id)
    describe()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--coordinator")
    p.add_argument("--nproc", type=int)
    p.add_argument("--proc_id", type=int)
    setup(p.parse_args())
    writer = CheckpointWriter("/ckpt")
    w = jnp.ones((64, 8))
    for step in range(1000):
        w = w * 0.99
        if step % 100 == 0:
            writer.write(step, w)


if __name__ == "__main__":
    main()
