import lightning as L

L.Trainer(devices=8, num_nodes=2).fit(module(), data())
