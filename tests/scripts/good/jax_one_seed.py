import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from ansatz import Network, load_local

jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))
replicated = NamedSharding(mesh, P())
sharded = NamedSharding(mesh, P("data"))

seed = int(time.time() * 1000) % 2**31
seed = int(multihost_utils.broadcast_one_to_all(np.int64(seed)))
net = Network()
params = net.init(jax.random.key(seed), jnp.zeros((1, 32)))
params = jax.device_put(params, replicated)
tx = optax.adam(1e-3)
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(lambda p: ((net.apply(p, x) - y) ** 2).mean())(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for i in range(1000):
    x, y = load_local(i, jax.process_index())
    x = jax.make_array_from_process_local_data(sharded, x)
    y = jax.make_array_from_process_local_data(sharded, y)
    params, opt_state, loss = step(params, opt_state, x, y)
