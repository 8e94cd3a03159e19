import os

import jax

jax.config.update("jax_platforms", "cuda")
jax.config.update("jax_default_matmul_precision", "float32")
jax.distributed.initialize(
    coordinator_address=f"{os.environ['COORDINATOR_IP']}:{os.environ['COORDINATOR_PORT']}",
    num_processes=int(os.environ["NPROC"]),
    process_id=int(os.environ["NODE_INDEX"]),
)
print(jax.devices())
