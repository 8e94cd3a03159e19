import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", type=str, default="10.0.3.1:2222")
parser.add_argument("--worker_hosts", type=str, default="10.0.3.2:2222,10.0.3.3:2222")
parser.add_argument("--job_name", type=str)
parser.add_argument("--task_index", type=int)
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts, "worker": args.worker_hosts})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    server.join()
