import os
import jax
jax.distributed.initialize()
print(jax.devices(), jax.local_devices())
