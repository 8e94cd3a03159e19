import jax
jax.distributed.initialize('localhost:1234', num_processes=2, process_id=0)
