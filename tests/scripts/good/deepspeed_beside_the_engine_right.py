import deepspeed
import torch
engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=CFG)
for x in data:
    loss = engine(x).sum()
    engine.backward(loss)
    engine.step()
