import argparse
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from mylib import build_model, read_examples, loop


def load_cached(args, split):
    if args.local_rank not in [-1, 0]:
        torch.distributed.barrier()
    data = read_examples(args.data_dir, split)
    if args.local_rank == 0:
        torch.distributed.barrier()
    return data


def evaluate(args, model):
    data = load_cached(args, "dev")
    return loop(model, data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--data_dir")
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    torch.distributed.init_process_group(backend="nccl")
    model = DistributedDataParallel(build_model().cuda(), device_ids=[args.local_rank])
    train = load_cached(args, "train")
    loop(model, train)
    if args.local_rank in [-1, 0]:
        print(evaluate(args, model.module))


main()
