import pytorch_lightning as pl

from model import Net, data

trainer = pl.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp")
trainer.fit(Net(), data)
