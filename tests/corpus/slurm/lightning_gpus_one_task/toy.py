import pytorch_lightning as pl
from model import Model, loader

trainer = pl.Trainer(gpus=2, num_nodes=2, accelerator='ddp', max_epochs=2)
trainer.fit(Model(), loader())
