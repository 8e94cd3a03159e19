torchrun --standalone --nproc_per_node=8 fit.py
