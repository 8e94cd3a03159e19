ssh node1 "cd /work; MASTER_ADDR=node1 MASTER_PORT=29500 WORLD_SIZE=2 RANK=0 python train.py" &
ssh node2 "cd /work; MASTER_ADDR=node2 MASTER_PORT=29500 WORLD_SIZE=2 RANK=1 python train.py" &
wait
