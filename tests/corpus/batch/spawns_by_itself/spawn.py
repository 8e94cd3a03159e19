import torch.multiprocessing as mp

if __name__ == "__main__":
    mp.spawn(work, nprocs=4)
