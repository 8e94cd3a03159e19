import jax

jax.distributed.initialize()
print(jax.local_devices())
