PS=localhost:2222
WORKERS=localhost:2223,localhost:2224
python trainer.py --ps_hosts=$PS --worker_hosts=$WORKERS --job_name=ps --task_index=0 &
for i in 0 1; do
  python trainer.py --ps_hosts=$PS --worker_hosts=$WORKERS --job_name=worker --task_index=$i &
done
wait
