export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=2
RANK=2 python train.py
