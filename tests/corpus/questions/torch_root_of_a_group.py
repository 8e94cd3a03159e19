import torch.distributed as dist


class Replicas:
    def __init__(self, net, data_group, expert_group):
        self.net, self.data_group, self.expert_group = net, data_group, expert_group

    def sync(self):
        for weight in self.net.parameters():
            group = self.expert_group if hasattr(weight, "expert") else self.data_group
            members = dist.get_process_group_ranks(group)
            dist.broadcast(weight.data, src=members, group=group)
