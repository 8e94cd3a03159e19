#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node 4 train.py --weights yolov5l.pt --data voc.yaml --batch-size 24
