import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = tf.keras.optimizers.Adam()
    acc = tf.keras.metrics.Mean()
batch = 128 * strategy.num_replicas_in_sync
ds = strategy.distribute_datasets_from_function(lambda ctx: make(ctx))
@tf.function
def train_step(it):
    def step_fn(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)
            loss = tf.nn.compute_average_loss(loss, global_batch_size=batch)
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(list(zip(g, model.trainable_variables)))
        acc.update_state(loss)
    strategy.run(step_fn, args=(next(it),))
it = iter(ds)
for epoch in range(5):
    for step in range(100):
        train_step(it)
