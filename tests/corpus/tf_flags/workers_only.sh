# on each of the two
python trainer.py --worker_hosts=w0:2222,w1:2222 --job_name=worker --task_index=1
