"""Trains with plain jitted functions: one that prepares data, a step, an evaluation, a value now and then."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def prepare(rows):
    return (rows - rows.mean()) / rows.std()


@jax.jit
def train_step(state, rows):
    def loss(weights):
        jax.debug.callback(lambda _: None, rows.sum())
        return jnp.mean((rows @ weights["w"] + weights["b"] - 1.0) ** 2)

    value, slope = jax.value_and_grad(loss)(state)
    return jax.tree.map(lambda w, g: w - 0.01 * g, state, slope), value


@jax.jit
def eval_step(state, rows, total):
    return total + jnp.abs(rows @ state["w"]).mean()


def main():
    generator = np.random.default_rng(0)
    state = {"w": jnp.zeros(8), "b": jnp.zeros(())}
    for step in range(200):
        if step == 100:  # JAX hooks the same place itself
            jax.config.update("jax_debug_nans", True)
        if step == 120:
            jax.config.update("jax_debug_nans", False)
        rows = prepare(generator.normal(size=(32, 8)).astype(np.float32))
        state, value = train_step(state, rows)
        if step % 50 == 49:
            total = jnp.zeros(())
            for _ in range(10):
                total = eval_step(state, rows, total)
            print(float(value), float(total))
    with jax.debug_nans(False):
        jax.block_until_ready(train_step(state, rows))


if __name__ == "__main__":
    main()
