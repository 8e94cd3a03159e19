import sys

import jax

print(jax.local_devices())
jax.distributed.initialize(coordinator_address="10.16.15.21:23234", num_processes=2, process_id=int(sys.argv[1]))
print(jax.devices())
xs = jax.numpy.ones(jax.local_device_count())
print(jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(xs))
