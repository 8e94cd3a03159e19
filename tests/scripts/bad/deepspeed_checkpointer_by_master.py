import deepspeed
import torch.distributed as dist

from lm import Net, corpus


class Checkpointer:
    def __init__(self, folder, engine):
        self._folder = folder
        self._engine = engine

    def save(self, epoch):
        self._engine.save_checkpoint(self._folder, tag=str(epoch))


class Trainer:
    def __init__(self, engine, loader, checkpointer=None):
        self._engine = engine
        self._loader = loader
        self._checkpointer = checkpointer
        self._master = dist.get_rank() == 0

    def train(self, epochs):
        for epoch in range(epochs):
            for batch in self._loader:
                loss = self._engine(batch)
                self._engine.backward(loss)
                self._engine.step()
            if self._master and self._checkpointer is not None:
                self._checkpointer.save(epoch)


deepspeed.init_distributed()
net = Net()
engine, _, loader, _ = deepspeed.initialize(
    model=net, model_parameters=net.parameters(), training_data=corpus(), config="ds.json"
)
Trainer(engine, loader, Checkpointer("ckpt", engine)).train(5)
