"""Trains in plain PyTorch; writes distributed checkpoints, one of them aside, and reads one back. The storage
of rank 1 takes its time while the others wait for it."""

import sys
import tempfile
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class SlowStorage(dcp.FileSystemWriter):
    def __init__(self, path, seconds):
        super().__init__(path)
        self.seconds = seconds

    def write_data(self, plan, planner):
        if dist.get_rank() == 1:
            time.sleep(self.seconds)
        return super().write_data(plan, planner)


class SlowReader(dcp.FileSystemReader):
    def __init__(self, path, seconds):
        super().__init__(path)
        self.seconds = seconds

    def read_data(self, plan, planner):
        if dist.get_rank() == 1:
            time.sleep(self.seconds)
        return super().read_data(plan, planner)


def main():
    seconds = float(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    apart = (
        dist.new_group()
    )  # what is saved aside must not mix its calls with those of the training
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    beside = None
    for step in range(60):
        loss = model(torch.randn(16, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        state = {"model": model.state_dict(), "step": step}
        if step == 20:
            dcp.save(state, storage_writer=SlowStorage(f"{folder[0]}/first", seconds))
        elif step == 30:
            second = f"{folder[0]}/second"
            beside = dcp.async_save(state, checkpoint_id=second, process_group=apart)
        elif step == 40:
            beside.result()
            dcp.load(state, storage_reader=SlowReader(f"{folder[0]}/first", seconds))
    dist.barrier()
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
