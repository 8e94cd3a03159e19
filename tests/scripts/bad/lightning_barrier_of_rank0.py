import pytorch_lightning as pl
from pytorch_lightning.utilities.rank_zero import rank_zero_only
from mylib import Lit, loaders


class Export(pl.Callback):
    @rank_zero_only
    def on_train_epoch_end(self, trainer, module):
        trainer.strategy.barrier("export")
        module.to_onnx("model.onnx")


trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp", callbacks=[Export()])
trainer.fit(Lit(), *loaders())
