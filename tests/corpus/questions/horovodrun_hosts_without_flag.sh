horovodrun -np 8 gpu01:4,gpu02:4 \
    python bench_synthetic.py --fp16-allreduce
