export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
# in one terminal:
RANK=0 python train.py
# in another terminal:
RANK=1 python train.py
