import math

import dgl
import torch as th
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def run(proc_id, n_gpus, args, devices, data):
    dev_id = devices[proc_id]
    th.cuda.set_device(dev_id)
    th.distributed.init_process_group(
        backend="nccl", init_method="tcp://127.0.0.1:12345", world_size=n_gpus, rank=proc_id
    )
    n_classes, train_g = data
    train_nid = train_g.ndata["train_mask"].nonzero(as_tuple=True)[0]
    train_nid = th.split(train_nid, math.ceil(len(train_nid) / n_gpus))[proc_id]
    sampler = dgl.dataloading.MultiLayerNeighborSampler([10, 25])
    dataloader = dgl.dataloading.NodeDataLoader(
        train_g, train_nid, sampler, batch_size=args.batch_size, shuffle=True, drop_last=False
    )
    model = DistributedDataParallel(SAGE(n_classes).to(dev_id), device_ids=[dev_id], output_device=dev_id)
    optimizer = th.optim.Adam(model.parameters())
    for epoch in range(args.num_epochs):
        for step, (input_nodes, seeds, blocks) in enumerate(dataloader):
            loss = th.nn.functional.cross_entropy(model(blocks, train_g), seeds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    mp.spawn(run, args=(4, parse(), [0, 1, 2, 3], load()), nprocs=4)
