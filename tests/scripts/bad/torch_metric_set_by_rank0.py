import torch
import torch.distributed as dist
from mylib import build, evaluate, load, train_epoch


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(build())
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optim)
    for epoch in range(10):
        train_epoch(model, optim, load("train", rank, epoch))
        if rank == 0:
            score = evaluate(model.module, load("test"))
            print(epoch, score)
        schedule.step(score)


main()
