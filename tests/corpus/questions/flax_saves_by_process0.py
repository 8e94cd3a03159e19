import jax
from flax.training import checkpoints

jax.distributed.initialize()
state = create_state()
for step, batch in enumerate(batches()):
    state = train_step(state, batch)
    if jax.process_index() == 0 and step % 1000 == 0:
        checkpoints.save_checkpoint_multiprocess("gs://bucket/run", state, step, keep=3)
