PORT=29501
for seed in 1 2; do
  CUDA_VISIBLE_DEVICES=$seed python -m torch.distributed.run --nproc_per_node=1 --master_port $PORT train.py --seed $seed &
done
wait
