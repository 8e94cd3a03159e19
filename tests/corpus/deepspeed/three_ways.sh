#!/bin/bash
export NCCL_IB_DISABLE=0
export MASTER_PORT=29501
deepspeed --hostfile=/job/hostfile --master_port $MASTER_PORT --num_nodes 2 --num_gpus 8 train.py --deepspeed --deepspeed_config ds_config.json
deepspeed --include="worker-2:0,1@worker-3" train.py --deepspeed_config ds.json
deepspeed --include localhost:0,1 --master_port 61000 eval.py
