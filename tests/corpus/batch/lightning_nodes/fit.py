import lightning as L

L.Trainer(devices=2, num_nodes=4, strategy='ddp').fit(module(), data())
