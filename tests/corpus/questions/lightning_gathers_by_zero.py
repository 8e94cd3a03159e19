import pytorch_lightning as pl
import torch


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(5, 1)

    def test_step(self, batch, index):
        return self.fc(batch[0])

    def test_epoch_end(self, outputs):
        if self.trainer.is_global_zero:
            outputs = self.all_gather(outputs)
            print(len(outputs))


trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp")
trainer.test(Model(), data())
