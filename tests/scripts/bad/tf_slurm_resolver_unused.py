import tensorflow as tf


def make_strategy():
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(port_base=15000)
    print("cluster:", resolver.cluster_spec())
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.NCCL
    )
    # the resolver is found by itself
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


with make_strategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data)
