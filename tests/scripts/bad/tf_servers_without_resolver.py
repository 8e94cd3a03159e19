import tensorflow as tf
from mylib import build

strategy = tf.distribute.experimental.ParameterServerStrategy()
with strategy.scope():
    model = build()
coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
