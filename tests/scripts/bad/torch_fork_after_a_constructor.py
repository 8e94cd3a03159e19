import multiprocessing as mp
import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(3, 3)


class Pool:
    def __init__(self, n):
        self.n = n
        self.model = Net().to("cuda")

    def child(self, rank):
        dist.init_process_group("nccl", init_method="tcp://localhost:3456", rank=rank, world_size=self.n)
        torch.cuda.set_device(rank)
        x = torch.ones(3).cuda()
        dist.all_reduce(x)

    def run(self):
        ps = [mp.Process(target=self.child, args=(i,)) for i in range(self.n)]
        for p in ps:
            p.start()
        for p in ps:
            p.join()


if __name__ == "__main__":
    Pool(2).run()
