export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
RANK=0 python train.py 2>&1 | tee a.log &
RANK=0 python train.py 2>&1 | tee b.log &
wait
