import jax
jax.distributed.initialize(coordinator_address="10.0.0.1:1234", num_processes=2, process_id=0)
print(jax.device_count())
