import os

import grain.python as grain
import jax
from dataset import Records

NUM_NODES = int(os.environ["NUM_NODES"])

if NUM_NODES > 1:
    jax.distributed.initialize(
        coordinator_address=os.environ["COORD"],
        num_processes=NUM_NODES,
        process_id=int(os.environ["NODE_RANK"]),
    )

source = Records("/data/train")
sampler = grain.IndexSampler(
    num_records=len(source), shard_options=grain.ShardByJaxProcess(), num_epochs=1, shuffle=True, seed=0
)
loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=4)


def main():
    for batch in loader:
        print(jax.process_index(), batch["x"].shape)


if __name__ == "__main__":
    main()
