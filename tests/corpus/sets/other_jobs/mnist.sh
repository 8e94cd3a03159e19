#!/bin/bash
export RANK=1 WORLD_SIZE=2 MASTER_ADDR=node7 MASTER_PORT=29511
python mnist.py
