import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from images import load_shard, make_encoder

jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, P("data"))
encode = make_encoder()

embed = jax.jit(lambda x: encode(x), out_shardings=sharding)

for part in range(100):
    local = load_shard(part, jax.process_index(), jax.process_count())
    images = jax.make_array_from_process_local_data(sharding, local)
    features = embed(images)
    host = np.asarray(features)
    if jax.process_index() == 0:
        np.save(f"features_{part}.npy", host)
