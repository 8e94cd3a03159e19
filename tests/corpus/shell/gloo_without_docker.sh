export GLOO_SOCKET_IFNAME=^docker0
torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=h0:29400 fit.py
