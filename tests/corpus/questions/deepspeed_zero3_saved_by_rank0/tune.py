import deepspeed
import torch

engine, optimizer, _, _ = deepspeed.initialize(
    model=net, model_parameters=net.parameters(), config="ds.json"
)
for batch in loader:
    loss = engine(**batch).loss
    engine.backward(loss)
    engine.step()
if engine.global_rank == 0:
    torch.save(engine.module.state_dict(), "tuned.pt")
