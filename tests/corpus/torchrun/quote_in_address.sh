#!/bin/bash
OUT=$HOME/logs/maml.out
python -m torch.distributed.run --nproc_per_node=8 --master_addr="127.0.0.1'" --master_port=$RANDOM ~/meta/main_maml.py --model resnet12 > $OUT &
