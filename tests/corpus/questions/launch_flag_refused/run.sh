#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1,2,3
python -m torch.distributed.launch --nproc_per_node=4 train_adgen.py \
    --model_path fnlp/cpt-large --dataset adgen --lr 2e-5 --batch_size 16 --epoch 5
