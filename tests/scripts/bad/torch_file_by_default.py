import argparse
import torch.distributed as dist
from mylib import fit

parser = argparse.ArgumentParser()
parser.add_argument("--init-method", default="file:///tmp/shared_init")
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--world-size", type=int, default=2)
opt = parser.parse_args()


def main():
    dist.init_process_group("gloo", init_method=opt.init_method, rank=opt.rank,
                            world_size=opt.world_size)
    fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
