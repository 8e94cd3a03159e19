import torch
import torch.distributed as dist


def setup(backend):
    try:
        dist.init_process_group(backend)
        print("rank", dist.get_rank())
    except RuntimeError as e:
        print("could not initialise:", e)


setup("gloo")
train(torch.nn.Linear(4, 1))
