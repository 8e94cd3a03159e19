import jax

jax.distributed.initialize(coordinator_address="host0:30000", num_processes=2, process_id=1)
print(jax.device_count())
print(jax.local_device_count())
