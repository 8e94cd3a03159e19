CUDA_VISIBLE_DEVICES=0,1 nohup torchrun --nproc_per_node=2 train.py --seed 1 > a.log &
CUDA_VISIBLE_DEVICES=2,3 nohup torchrun --nproc_per_node=2 train.py --seed 2 > b.log &
