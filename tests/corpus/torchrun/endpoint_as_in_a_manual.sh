torchrun --nproc_per_node=2 --nnodes 2 --rdzv_id 1 --rdzv_backend=c10d --rdzv_endpoint='ip:port' tools/train.py -c configs/r101vd.yml
