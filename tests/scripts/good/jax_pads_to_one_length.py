import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from translate import Transformer, sentences

jax.distributed.initialize()
mesh = Mesh(mesh_utils.create_device_mesh((jax.device_count(),)), ("data",))
data_sharding = NamedSharding(mesh, P("data"))
model = Transformer()
params = model.init(jax.random.key(0), jnp.zeros((1, 16), jnp.int32))
state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-4))


def pad_batch(batch):
    longest = 512
    return np.stack([np.pad(s, (0, longest - len(s))) for s in batch])


@jax.jit
def train_step(state, tokens):
    def loss_fn(params):
        logits = state.apply_fn(params, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


local = sentences("train.txt", shard=jax.process_index(), num_shards=jax.process_count())
for step in range(10000):
    batch = pad_batch(local.take(64))
    tokens = jax.make_array_from_process_local_data(data_sharding, batch)
    state, loss = train_step(state, tokens)
    if jax.process_index() == 0 and step % 100 == 0:
        print(step, float(loss))
