import jax
from flax.jax_utils import replicate, unreplicate
from flax.training.checkpoints import save_checkpoint_multiprocess

from model import eval_step, get_batch, init_state, train_step

jax.distributed.initialize()
p_train_step = jax.pmap(train_step, axis_name="batch", donate_argnums=(0,))
p_eval_step = jax.pmap(eval_step, axis_name="batch")


def evaluate(rng, p_eval_step, params):
    out = {}
    for split in ("train", "val"):
        losses = [p_eval_step(params, get_batch(split, rng)) for _ in range(20)]
        out[split] = sum(losses) / len(losses)
    return out


def main(eval_interval=100):
    rng = jax.random.PRNGKey(0)
    state = replicate(init_state(rng))
    for iter_num in range(10000):
        state, loss = p_train_step(state, get_batch("train", rng))
        if iter_num % eval_interval == 0 and jax.process_index() == 0:
            metrics = evaluate(rng, p_eval_step, state.params)
            print(iter_num, jax.device_get(metrics["val"]))


if __name__ == "__main__":
    main()
