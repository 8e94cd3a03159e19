import jax
from jax.experimental import multihost_utils
jax.distributed.initialize()
def main():
    if jax.process_index() == 0:
        multihost_utils.sync_global_devices("x")
        multihost_utils.broadcast_one_to_all(3)
        multihost_utils.process_allgather(3)
main()
