import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from cells import CellData


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 4)

    def training_step(self, batch, i):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, i):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean(), rank_zero_only=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


trainer = L.Trainer(devices=4, strategy="ddp", callbacks=[
    EarlyStopping(monitor="val_acc", mode="max"), ModelCheckpoint(monitor="val_acc", mode="max"),
])
trainer.fit(Net(), CellData())
