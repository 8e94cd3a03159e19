import json
import os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
task_type = strategy.cluster_resolver.task_type
task_id = strategy.cluster_resolver.task_id
with strategy.scope():
    model = build()
    model.compile('sgd', 'mse')
d = strategy.experimental_distribute_dataset(ds)
for x in d:
    per = strategy.run(step, args=(x,))
    total = strategy.reduce('SUM', per, axis=None)
    if task_id == 0:
        print(total)
