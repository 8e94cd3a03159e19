import os
import jax
jax.distributed.initialize(local_device_ids=[0, 1])
print(jax.devices(), jax.local_devices())
