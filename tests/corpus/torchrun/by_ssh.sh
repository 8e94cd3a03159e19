HOSTS=(node0 node1)
for i in "${!HOSTS[@]}"; do
  ssh "${HOSTS[$i]}" "cd $PWD && torchrun --nnodes=2 --nproc-per-node=8 --node-rank=$i --master-addr=${HOSTS[0]} --master-port=29500 train.py" &
done
wait
