import deepspeed
import torch
from deepspeed.profiling.flops_profiler import FlopsProfiler

engine, optimizer, _, _ = deepspeed.initialize(model=build(), config="zero3.json")
profiler = FlopsProfiler(engine)
for step, batch in enumerate(batches()):
    if step % 100 == 0 and torch.distributed.get_rank() == 0:
        profiler.start_profile()
        outputs = engine(**batch)
        profiler.stop_profile()
        print(step, outputs.loss)
    loss = engine(**batch).loss
    engine.backward(loss)
    engine.step()
