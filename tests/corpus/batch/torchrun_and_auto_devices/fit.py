import lightning as L

L.Trainer(devices='auto').fit(module(), data())
