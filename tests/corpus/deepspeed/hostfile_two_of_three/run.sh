#!/bin/bash
deepspeed --hostfile=hostfile --num_nodes 3 train.py --deepspeed ds.json
