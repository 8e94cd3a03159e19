export MASTER_ADDR="http://10.0.0.1"
export MASTER_PORT=29500
export WORLD_SIZE=2
export RANK=0
python train.py
