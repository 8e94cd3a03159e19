import deepspeed
import torch

model = torch.nn.Linear(16, 16)
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for step in range(1000):
    batch = torch.randn(4, 16, device=engine.device, dtype=torch.half)
    loss = engine(batch).pow(2).mean()
    engine.backward(loss)
    engine.step()
    if step % 200 == 0 and torch.distributed.get_rank() == 0:
        engine.save_checkpoint("checkpoints", tag=f"step{step}")
