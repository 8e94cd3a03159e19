import jax

jax.distributed.initialize(local_device_ids=[0])
