import pytorch_lightning as pl

NODES = 2

pl.Trainer(accelerator='gpu', devices=4, num_nodes=NODES).fit(module(), data())
