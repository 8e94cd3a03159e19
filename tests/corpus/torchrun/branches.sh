if [ "$1" = debug ]; then
  torchrun --standalone --nproc_per_node=1 train.py --steps 10
elif [ "$1" = one ]; then
  torchrun --nnodes=1 --nproc_per_node=8 train.py
else
  torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$HEAD:29500 train.py
fi
