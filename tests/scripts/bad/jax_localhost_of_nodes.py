import os
import jax
from mylib import fit

jax.distributed.initialize(
    coordinator_address="localhost:9911",
    num_processes=int(os.environ["SLURM_NNODES"]),
    process_id=int(os.environ["SLURM_NODEID"]))
fit(jax.process_index(), jax.process_count())
