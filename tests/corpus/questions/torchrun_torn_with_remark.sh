        torchrun --nproc_per_node 4 \
            --nnodes 2
            --rdzv_id 71 \ # any number
            --rdzv_backend c10d \
            --rdzv_endpoint node0:29500 \
             ./train.py --data photos  # on the first
