import os
import torch
import torch.distributed as dist

def setup():
    os.environ['MASTER_ADDR'] = '192.168.43.51'
    os.environ['MASTER_PORT'] = '8000'
    os.environ['RANK'] = '1'
    os.environ['WORLD_SIZE'] = '2'
    dist.init_process_group(backend='gloo', init_method='tcp://192.168.43.51:8000', rank=1, world_size=2)
    print("Connected ...")

if __name__ == "__main__":
    setup()
