import lightning as L

L.Trainer(devices=4, num_nodes=2).fit(module(), data())
