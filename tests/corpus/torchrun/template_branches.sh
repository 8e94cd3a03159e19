#!/bin/bash
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=2
{% if debug %}
RANK=0 python train.py
{% else %}
torchrun --nnodes={{ nodes }} --nproc-per-node={{ gpus }} --node-rank={{ rank }} --master-addr={{ head }} \
  --master-port={{port}} train.py
{% endif %}
RANK=1 python train.py
