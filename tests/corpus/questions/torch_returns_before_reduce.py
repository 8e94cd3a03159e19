import torch
import torch.distributed as dist


class RadixCache:
    def __init__(self, group):
        self.group = group
        self.ongoing = {}
        self.ack = []

    def write_through(self, node):
        if self.host_pool_alloc(node):
            self.ongoing[node.id] = node

    def writing_check(self):
        if len(self.ongoing) == 0:
            return
        finished = 0
        for event in self.ack:
            if not event.query():
                break
            finished += 1
        count = torch.tensor(finished, dtype=torch.int)
        dist.all_reduce(count, op=dist.ReduceOp.MIN, group=self.group)
        for event in self.ack[: count.item()]:
            self.ongoing.pop(event.id)
