import functools
import tensorflow as tf
import tensorflow_datasets as tfds


def dataset_fn(name, input_context=None):
    per_replica = input_context.get_per_replica_batch_size(256)
    d = tfds.load(name, split="train", as_supervised=True, shuffle_files=True)
    d = d.map(lambda im, l: (tf.cast(im, tf.float32) / 255.0, l), num_parallel_calls=4)
    return d.shuffle(1024).batch(per_replica).repeat()


def build(strategy):
    with strategy.scope():
        m = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
        m.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"])
    return m


if __name__ == "__main__":
    strat = tf.distribute.MultiWorkerMirroredStrategy()
    make = functools.partial(dataset_fn, "mnist")
    inputs = strat.distribute_datasets_from_function(dataset_fn=make)
    build(strat).fit(inputs, epochs=3, steps_per_epoch=200)
