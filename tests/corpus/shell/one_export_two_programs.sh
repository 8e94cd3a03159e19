export MASTER_ADDR=node0 MASTER_PORT=29500 WORLD_SIZE=2 RANK=0
python watch_gpu.py &
python train.py
