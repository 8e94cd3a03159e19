import functools
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from net import apply, init
from pipeline import train_batches, test_batches

jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))
shard = NamedSharding(mesh, P("data"))
repl = NamedSharding(mesh, P())
tx = optax.adamw(3e-4)


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()


@functools.partial(jax.jit, in_shardings=(repl, repl, shard, shard), out_shardings=(repl, repl, repl))
def step(params, opt, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt = tx.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, loss


@functools.partial(jax.jit, in_shardings=(repl, shard, shard), out_shardings=repl)
def accuracy(params, x, y):
    return (apply(params, x).argmax(-1) == y).mean()


params = jax.device_put(init(jax.random.PRNGKey(0)), repl)
opt = tx.init(params)
for i, (x, y) in enumerate(train_batches(shard)):
    params, opt, loss = step(params, opt, x, y)
    if jax.process_index() == 0 and i % 200 == 0:
        accs = [accuracy(params, tx_, ty) for tx_, ty in test_batches(shard)]
        print(i, float(loss), float(jnp.mean(jnp.array(accs))))
