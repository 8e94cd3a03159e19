import lightning as L

L.Trainer(devices=2, num_nodes=1).fit(module(), data())
