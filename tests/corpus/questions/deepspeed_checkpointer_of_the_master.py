import deepspeed
import torch.distributed as dist


class Saver:
    def __init__(self, folder):
        self.folder = folder

    def save(self, trainer, epoch):
        trainer.model_engine.save_checkpoint(self.folder, tag=f"epoch{epoch}")


class Training:
    def __init__(self, net, config, saver):
        self.model_engine, _, _, _ = deepspeed.initialize(model=net, config=config)
        self.master = dist.get_rank() == 0
        self.saver = saver

    def run(self, epochs):
        for epoch in range(epochs):
            self.train(epoch)
            if self.master and self.saver is not None:
                self.saver.save(self, epoch)


Training(net, "zero.json", Saver("out")).run(3)
