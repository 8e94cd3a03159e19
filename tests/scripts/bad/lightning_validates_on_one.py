"""Validates on the main process alone, after training on four devices."""

import lightning.pytorch as pl

from project import Data, Net

trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=3)
model = Net()
trainer.fit(model, Data())
if trainer.is_global_zero:
    trainer.validate(model, Data())
