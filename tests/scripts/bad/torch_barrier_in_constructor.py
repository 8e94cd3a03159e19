import os
import torch.distributed as dist
from torch.utils.data import Dataset


class Corpus(Dataset):
    def __init__(self, path):
        self.rows = open(path).read().split("\n")
        dist.barrier()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main():
    dist.init_process_group("gloo")
    train = Corpus("train.txt")
    test = None
    if int(os.environ["RANK"]) == 0:
        test = Corpus("test.txt")
    print(len(train), test)


main()
