torchrun --nproc_per_node=4 ring.py --steps 10
