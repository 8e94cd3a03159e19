#!/bin/bash
# each takes its share of the files; none of them meets another one
export WORLD_SIZE=2
RANK=0 python tokenize_shard.py
RANK=1 python tokenize_shard.py
python embed.py --rank 0 --world-size 2
python embed.py --rank 1 --world-size 2
