import jax

jax.distributed.initialize()
print(jax.process_index(), jax.device_count())
if jax.process_index() == 0:
    print("ready")
