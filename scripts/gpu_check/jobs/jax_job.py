"""A small training of JAX on the GPU or the CPU."""

import argparse

import jax
import jax.numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
options = parser.parse_args()

platform = jax.devices()[0].platform
if options.device != "cpu" and platform == "cpu":
    raise SystemExit("JAX sees no GPU")


@jax.jit
def step(weights, batch):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(weights)
    return weights - 0.01 * gradient, loss


weights = jnp.ones((64, 8))
for number in range(50):
    batch = jax.random.normal(jax.random.PRNGKey(number), (32, 64))
    weights, loss = step(weights, batch)
print(f"trained on {jax.device_count()} x {platform}, loss {float(loss):.4f}", flush=True)
