import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(10)
        self.loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_object(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


with strategy.scope():
    model = Net()
    model.compile(optimizer="adam")
model.fit(tf.data.Dataset.from_tensor_slices((tf.zeros([640, 8]), tf.zeros([640], tf.int64))).batch(128))
