"""Mistakes in the set-up of distributed TensorFlow and JAX whose exceptions are known, with cause and
remedy."""

from __future__ import annotations

from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake

_LEGACY_KERAS = (
    "pip install tf_keras; export TF_USE_LEGACY_KERAS=1   # on every worker, before tensorflow is "
    "imported"
)
_AUTOSHARD_FIX = (
    "options = tf.data.Options(); options.experimental_distribute.auto_shard_policy = "
    "tf.data.experimental.AutoShardPolicy.DATA; dataset = dataset.with_options(options)   # or "
    "write at least as many files as there are workers"
)

_SHARED = (
    "on the hosts of the chief and of this task: ls -ld DIR   # DIR of the checkpoint, by an absolute path "
    "that is the same shared storage on every one (a volume of the job, NFS, gs://, s3://)"
)
TENSORFLOW_MISTAKES = (
    KnownMistake(
        pattern=r"must have (?:exactly |only )?one \"(?P<job>chief|master)\" node",
        cause="an Estimator needs exactly one {job} in the cluster of TF_CONFIG, and there is none, or more",
        fix='in TF_CONFIG, the same for all tasks: "cluster": {{"{job}": ["HOST0:PORT"], "worker": [...], '
        '"ps": [...]}}; the first worker is to be that task ("type": "{job}", "index": 0); try it: '
        "allaboard check",
        sample='If "cluster" is set in TF_CONFIG, it must have one "chief" node.',
        near_miss='If "cluster" is set in TF_CONFIG, task index must be set',
        source="TensorFlow 1.4 to 2.15 (estimator/run_config.py)",
    ),
    KnownMistake(
        pattern=r"^(?P<path>\S{0,300}_temp(?:_\w{1,64})?/part-\d{5}-of-\d{5}\.(?:index|data)\S{0,100})\s*"
        r"(?:$|\[\[.{0,400}?MergeV2Checkpoints)",
        cause="a task that puts a checkpoint together does not find the part {path} of another one: the "
        "tasks do not share one folder",
        fix=_SHARED,
        sample="/tmp/q/model.ckpt-7_temp_77ac/part-00001-of-00003.index\n\t [[Node: save/MergeV2Checkpoints"
        ' = MergeV2Checkpoints[_device="/job:ps/replica:0/task:2/cpu:0"](save/prefixes)]]',
        near_miss="/data/input/part-00001-of-00003.index",
        source="as reported for TensorFlow 0.12 to 1.3, which leave out why",
    ),
    KnownMistake(
        pattern=r"Running operations on `Array`s that are not fully addressable by this process",
        cause="an array that is spread over several processes is used outside of jit, which every process "
        "must do at the same place",
        fix="compute it in a jitted function that all processes call (none under `if jax.process_index() == "
        "0`), and read it by multihost_utils.process_allgather(x, tiled=True); a newer JAX may allow the "
        "operation itself",
        sample="Running operations on `Array`s that are not fully addressable by this process (i.e. `Array`s "
        "with data sharded across multiple devices and processes.) is dangerous.",
        near_miss="Running operations on `Array`s of two dtypes",
        source="as reported for JAX 0.4, not recorded",
    ),
    KnownMistake(
        pattern=r"Cannot replicate if number of devices \((?P<own>\d+)\) is different from (?P<all>\d+)",
        cause="this process has {own} XLA device, and the runtime counts {all}: the devices were used in "
        "the parent before its processes were spawned, or the runtime was set up for one process",
        fix="make no xm.xla_device(), and nothing on it, before xmp.spawn(f, nprocs=None), and spawn from a "
        "fresh process (restart a notebook's kernel); sudo lsof -w /dev/accel*   # is one left of a run?",
        sample="Cannot replicate if number of devices (1) is different from 4",
        near_miss="Cannot replicate if number of copies (1) is different from 4",
        source="torch_xla 1.5 to 1.13 (core/xla_model.py)",
    ),
    KnownMistake(
        pattern=r"^cannot reshape array of size (?P<have>\d+) into shape \((?P<mesh>[\d, ]{1,60})\)",
        raised_in=r"/orbax/checkpoint/|/array_serialization/",
        cause="the checkpoint was saved on a mesh of ({mesh}) devices, and here are {have}",
        fix="give restore the shardings of this mesh: ocp.ArrayRestoreArgs(sharding=...) for each array "
        "(ocp.checkpoint_utils.construct_restore_args(target)), or restore as numpy: "
        "ocp.RestoreArgs(restore_type=np.ndarray)",
        sample="cannot reshape array of size 2 into shape (1,64)",
        sample_frame=(
            "/v/lib/python3.10/site-packages/orbax/checkpoint/type_handlers.py",
            "np.array(jax.devices()).reshape(shape), axis_names=axis_names",
        ),
        near_miss="cannot reshape array of size 2 into shape (1,64) of a batch",
        source="NumPy, below Orbax 0.2 to 0.5",
    ),
    KnownMistake(
        pattern=r"in OCDBT database at .{1,400}?process_(?P<process>\d{1,6})/?\"?: Configuration "
        r"mismatch on uuid",
        cause="another process writes the same part of the checkpoint: each takes itself for process "
        "{process}, as where they have not met in jax.distributed.initialize",
        fix="print(jax.process_index(), jax.process_count())   # in each process, after "
        "jax.distributed.initialize(): numbers of their own, and the same count; else start them by a "
        "launcher that JAX knows, or give coordinator_address=, num_processes=, process_id=",
        sample='FAILED_PRECONDITION: Error writing "psi/0.0.0" in OCDBT database at local file "/d/'
        'ocdbt.process_0/": Configuration mismatch on uuid: expected "c74d" but received "f4fc"',
        near_miss='Error writing "psi/0.0.0" in OCDBT database at local file "/d/ocdbt.process_0/": '
        "No space left",
        source="TensorStore 0.1.40 to 0.1.80 (kvstore/ocdbt/config.cc), below Orbax",
    ),
    KnownMistake(
        pattern=r"^Unable to find a context_id matching the specified one",
        cause="the server (a TPU's, or another task's) does not know this program's context: it was "
        "restarted, another program took it, or the program never connected to the cluster",
        fix="tf.config.experimental_connect_to_cluster(resolver); "
        "tf.tpu.experimental.initialize_tpu_system(resolver)   # anew, in a fresh process, and before the "
        "strategy is made; experimental_connect_to_host is not enough",
        sample="Unable to find a context_id matching the specified one (-6878417938495808013). Perhaps the "
        "worker was restarted, or the context was GC'd?",
        near_miss="Unable to find a device matching the specified one",
        source="TensorFlow 2.0 to 2.21 (eager_service_impl)",
    ),
    KnownMistake(
        pattern=r"^u?'?\d+'? has type <?(?:class ')?(?:unicode|str)\b'?>?, but expected one of: int"
        r"|^bad argument type for built-in operation$|^an integer is required",
        raised_in=r"/server_lib\.py|/cluster_resolver/",
        cause="a job of the cluster in TF_CONFIG is an object with the tasks' numbers as keys, and "
        "JSON's keys are text; TensorFlow reads it only as a list of addresses",
        fix='write each job of the cluster as a list: "worker": ["HOST0:PORT", "HOST1:PORT"]   '
        "# the same one for all tasks; try it: allaboard check",
        sample="'1' has type unicode, but expected one of: int, long",
        sample_frame=(
            "/v/lib/python2.7/site-packages/tensorflow/python/training/server_lib.py",
            "job_def.tasks[i] = task_address",
        ),
        near_miss="'1' has type float, but expected one of: bytes, unicode",
        source="TensorFlow 1.4 to 2.4 with protobuf 3",
    ),
    KnownMistake(
        pattern=r"Assign requires shapes of both tensors to match\. lhs shape= ?(?P<own>\[[\d,]*\]) "
        r"rhs shape= ?"
        r"(?P<new>\[[\d,]*\]).{0,600}?_device=\"/job:(?P<job>\w+)/(?:replica:\d+/)?task:(?P<task>\d+)",
        cause="{job} {task} still has the variable of another model ({own}, and this one's is {new}): its "
        "server was left from an earlier run, or the checkpoint is another model's",
        fix="restart the parameter servers (ps) together with the workers, since variables live as long as "
        "their server; and give the new model a model_dir of its own",
        sample="Assign requires shapes of both tensors to match. lhs shape= [784,100] rhs shape= "
        "[784,500]\n\t "
        '[[Node: hid_w/Assign = Assign[T=DT_FLOAT, _device="/job:ps/replica:0/task:0/cpu:0"](hid_w, t)]]',
        near_miss="Assign requires shapes of both tensors to match. lhs shape= [784,100] rhs shape= "
        "[784,500]",
        source="TensorFlow 0.8 to 1.15",
    ),
    KnownMistake(
        pattern=r"Attempting to use uninitialized value (?P<name>\S{1,200}).{0,600}?_device=\"/job:(?P<job>"
        r"(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)",
        cause="the variable {name} on {job} {task} has no value: that server was restarted and lost it, or "
        "the chief did not initialise the model yet",
        fix="read the log of {job} {task}: did it start a second time? MonitoredTrainingSession, "
        "unlike Session, "
        "has the chief (worker 0) restore it from the checkpoint; start the chief before the other workers",
        sample="Attempting to use uninitialized value dense/kernel\n\t [[Node: dense/kernel/read = "
        'Identity[T=DT_FLOAT, _device="/job:ps/replica:0/task:1/device:CPU:0"](dense/kernel)]]',
        near_miss="Attempting to use uninitialized value dense/kernel\n\t [[Node: dense/kernel/read]]",
        source="TensorFlow 0.8 to 1.15",
    ),
    KnownMistake(
        pattern=r"No matching devices found for '/job:(?P<job>\w+)/replica:\d+/task:(?P<task>\d+)/device:"
        r"TPU_SYSTEM:\d+'",
        cause="the server of {job} {task} has no TPU: it is another machine's address, its TPU does not run, "
        "or its software is of another version than this client",
        fix="gcloud compute tpus describe NAME   # state READY, health HEALTHY, its address and version: the "
        "version must be that of this client, and TPU_IP_ADDRESS (XRT_TPU_CONFIG) its address",
        sample="Check failed: session.Run() == Status::OK() (Invalid argument: No matching devices found for "
        "'/job:c_tpu_worker/replica:0/task:0/device:TPU_SYSTEM:0'",
        near_miss="No matching devices found for '/job:worker/replica:0/task:0/device:GPU:0'",
        source="TensorFlow 1.12 to 2.12, PyTorch/XLA 1.5 to 1.13 (XRT)",
    ),
    KnownMistake(
        pattern=r"TPU (?P<name>[\w.-]{1,80}) is not HEALTHY yet",
        cause="Google Cloud calls the TPU {name} not healthy: it starts, is under maintenance, or an earlier "
        "program left it so",
        fix="gcloud compute tpus describe {name}   # its health and state; if it stays so: gcloud compute "
        "tpus stop {name} && gcloud compute tpus start {name} (a pod: delete and create it)",
        sample="TPU node-v3-32 is not HEALTHY yet. Re-run when all TPUs are HEALTHY",
        near_miss="TPU node-v3-32 is HEALTHY",
        source="PyTorch/XLA 1.5 to 1.13 (distributed/cluster.py)",
    ),
    KnownMistake(
        pattern=r"(?:From /job:(?P<job>\w+)/(?:replica:\d+/)?task:(?P<task>\d+"
        r"):\s+)?(?P<path>[^\s;:]{0,300}(?:_temp(?:_\w{1,64})?/part-\d|\.ckpt-\d+[._]"
        r"|/variables_temp)[^\s;]{0,200}); No such file or directory",
        cause="each task writes its own part of a checkpoint, and the folder of {path} is not there: the "
        "tasks do not share one folder {job} {task}",
        fix=_SHARED,
        sample="From /job:ps/replica:0/task:0:\n/tmp/tmpK/model.ckpt-1_temp_0b4c/part-00000-of-00003.data-"
        "00000-of-00001.tempstate11; No such file or directory",
        near_miss="/data/train/part-00000-of-00003.tfrecord; No such file or directory",
        source="TensorFlow 1.4 to 2.21 (tensor_bundle)",
    ),
    KnownMistake(
        pattern=r"(?:No such file or directory|NOT_FOUND)[^\n]{0,300}?orbax-checkpoint-tmp"
        r"|orbax-checkpoint-tmp[^\n]{0,300}?(?:No such file or directory|NOT_FOUND|does not exist)",
        cause="process 0 makes the folder of a checkpoint for all, and this host does not see it: the folder "
        "is not shared by every host",
        fix=_SHARED,
        sample="[Errno 2] No such file or directory: '/home/me/ckpts/100.orbax-checkpoint-tmp-17/default'",
        near_miss="[Errno 2] No such file or directory: '/home/me/ckpts/100/default'",
        source="Orbax 0.1 to 0.11",
    ),
    KnownMistake(
        pattern=r"Distributed system is not available; please initialize",
        cause="Orbax coordinates the hosts through JAX's distributed service, which was not started",
        fix="jax.distributed.initialize()   # first in the program, in every process of every host, before "
        "the checkpoint manager is made",
        sample="Distributed system is not available; please initialize it via "
        "`jax.distributed.initialize()` at the start of your program.",
        near_miss="The filesystem is not available",
        source="Orbax 0.3 to 0.11",
    ),
    KnownMistake(
        pattern=r"^(?P<name>SLURM_\w+) not found in environment\. Not running inside a SLURM step",
        cause="{name} is not set: the program runs outside of a step (in the batch script itself, or on a "
        "login node)",
        fix="srun python SCRIPT   # inside the job (sbatch, salloc), with one task for each process of the "
        "cluster: srun --ntasks=N",
        sample="SLURM_STEP_NODELIST not found in environment. Not running inside a SLURM step?",
        near_miss="MY_NODELIST not found in environment",
        source="TensorFlow 2.2 to 2.21 (slurm_cluster_resolver.py)",
    ),
    KnownMistake(
        pattern=r"(?:Op type not registered '(?P<op>[^'\n]{1,80})'|'(?P<function>[^'\n]{1,80})"
        r"' is neither a type of a primitive operation nor a name of a function registered)"
        r" in binary running on (?P<host>[\w.-]{1,255}?)\.?(?:\s|$)",
        cause="the program on {host} does not know {op}{function}: the client and the server (a TPU's, or "
        "another task's) run different versions of TensorFlow, or it did not import what has the operation",
        fix="python -c 'import tensorflow as tf; print(tf.__version__)'   # here and on {host}: install the "
        "same version; a TPU gets its own by gcloud compute tpus create --version=...",
        sample="'__inference__tpu_init_fn_4' is neither a type of a primitive operation nor a name "
        "of a function "
        "registered in binary running on n-80f5d4ef-w-0. Make sure the operation or function is registered",
        near_miss="Op type not registered in the table of operations",
        source="TensorFlow 1.4 to 2.21",
    ),
    KnownMistake(
        pattern=r"Trying to connect an http1\.x server|HTTP proxy returned response code \d+",
        cause="an HTTP proxy, or another web server, answered in place of the other process",
        fix="env | grep -i _proxy   # in the job's environment: unset http_proxy https_proxy all_proxy, or "
        "export no_proxy=HOST,ADDRESS,... with all members of the job",
        sample="Failed to meet rendezvous 'test_accuracy': Trying to connect an http1.x server (14)",
        near_miss="Trying to connect to the server",
        source="gRPC 1.19 to 1.70, in TensorFlow, JAX and PyTorch/XLA",
    ),
    KnownMistake(
        pattern=r"Attempt to convert a value \(PerReplica:",
        raised_in=r"/keras/src/|\.(?:fit|evaluate|predict)\s*\(",
        cause="Keras 3 does not support MultiWorkerMirroredStrategy in fit, only MirroredStrategy "
        "on one host (TensorFlow 2.16 and later bring Keras 3)",
        fix=_LEGACY_KERAS,
        sample="Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor: shape=(16, 8), dtype=float32>\n}) "
        "with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.",
        sample_frame=(
            "/v/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py",
            "raise e.with_traceback(filtered_tb) from None",
        ),
        near_miss="Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a "
        "Tensor.",
        source="TensorFlow 2.16 to 2.21 with Keras 3.0 to 3.15",
    ),
    KnownMistake(
        pattern=r"Attempt to convert a value \(PerReplica:",
        cause="a batch of a distributed dataset (PerReplica) is used outside of strategy.run",
        fix="strategy.run(step, args=(batch,))   # in the step it is a plain tensor; or "
        "strategy.experimental_local_results(value)",
        sample="Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor: shape=(1,), dtype=int64>\n}) with "
        "an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.",
        near_miss="Attempt to convert a value (<object object>) with an unsupported type to a Tensor.",
        source="TensorFlow 2.2 to 2.21",
    ),
    KnownMistake(
        pattern=r"Please use `?tf\.keras\.losses\.Reduction\.SUM`? or "
        r"`?tf\.keras\.losses\.Reduction\.NONE`?",
        cause="the loss has Keras's default reduction (AUTO, SUM_OVER_BATCH_SIZE), which a custom loop under "
        "a strategy must not use: it would average over one replica's batch alone",
        fix="loss = tf.keras.losses.X(reduction=tf.keras.losses.Reduction.NONE), then in the step "
        "tf.nn.compute_average_loss(loss(y, p), global_batch_size=N)",
        sample="Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for loss "
        "reduction when losses are used with `tf.distribute.Strategy` outside of the built-in training "
        "loops.",
        near_miss="Invalid value for argument `reduction`. Expected one of sum, none. Received: "
        "reduction=auto",
        source="TensorFlow 1.14 to 2.15, tf_keras 2.16 to 2.21",
    ),
    KnownMistake(
        pattern=r"(?:Invalid Reduction Key|Invalid value for argument `reduction`)\W.{0,120}?"
        r"(?P<name>auto|AUTO)\b",
        cause="Keras 3 has no loss reduction AUTO",
        fix="reduction='sum_over_batch_size' for fit, 'none' or 'sum' in a custom loop under a strategy; or "
        "the older Keras: TF_USE_LEGACY_KERAS=1 with tf_keras",
        sample="Invalid value for argument `reduction`. Expected one of "
        "('sum_over_batch_size', 'sum', None, 'none'). Received: reduction=auto",
        near_miss="Invalid value for argument `padding`. Expected one of same, valid. Received: auto",
        source="Keras 3.0 to 3.15",
    ),
    KnownMistake(
        pattern=r"Could not apply FILE based sharding: the dataset only has (?P<files>\d+)"
        r" file\(s\), which is not enough for the required (?P<workers>\d+)",
        cause="the dataset has {files} file(s) for {workers} workers, and tf.data gives each worker files of "
        "its own",
        fix=_AUTOSHARD_FIX,
        sample="{{function_node __wrapped__IteratorGetNext}} Could not apply FILE based sharding: "
        "the dataset only has 1 file(s), which is not enough for the required 2 shards/workers.",
        near_miss="Could not apply the patch: the dataset only has 1 file",
        source="TensorFlow 2.9 to 2.21",
    ),
    KnownMistake(
        pattern=r"There aren't enough elements in this dataset for each shard to have at least one element"
        r" \(# elems = (?P<files>\d+), # shards = (?P<workers>\d+)\)",
        cause="the dataset has fewer files or elements ({files}) than workers ({workers}), and tf.data "
        "gives each worker some of its own",
        fix=_AUTOSHARD_FIX,
        sample="There aren't enough elements in this dataset for each shard to have at least one element "
        "(# elems = 1, # shards = 2). If you are using datasets with distribution strategy, considering "
        "setting the auto sharding policy to either DATA or OFF",
        near_miss="There aren't enough elements in this list",
        source="TensorFlow 2.0 to 2.21",
    ),
    KnownMistake(
        pattern=r"Found an unshardable source dataset|Unable to shard this input\. You may need to wrap "
        r"the inputs to your reader",
        cause="tf.data cannot give each worker files of its own, since the dataset does not begin with a "
        "list of files",
        fix=_AUTOSHARD_FIX,
        sample='Found an unshardable source dataset: name: "TensorSliceDataset/_2"',
        near_miss="Found a source dataset: TensorSliceDataset",
        source="TensorFlow 2.1 to 2.21",
    ),
    KnownMistake(
        pattern=r"Trying to create optimizer slot variable under the scope for tf\.distribute\.Strategy",
        cause="the model and its optimizer were created under different strategies, or one of them "
        "under none",
        fix="create the model, the optimizer and what restores them inside one `with strategy.scope():`",
        sample="Trying to create optimizer slot variable under the scope for tf.distribute.Strategy (<x>), "
        "which is different from the scope used for the original variable (<y>).",
        near_miss="Trying to create a variable twice",
        source="TensorFlow 2.0 to 2.15, tf_keras",
    ),
    KnownMistake(
        pattern=r"You must specify an aggregation method to update a (?P<kind>\w+) in Replica Context",
        cause="a variable is changed inside strategy.run, and TensorFlow does not know how the replicas' "
        "values become one",
        fix="tf.Variable(..., aggregation=tf.VariableAggregation.MEAN)   # or SUM, ONLY_FIRST_REPLICA",
        sample="You must specify an aggregation method to update a MirroredVariable in Replica Context. You "
        "can do so by passing an explicit value for argument `aggregation` to tf.Variable(..).",
        near_miss="You must specify a method",
        source="TensorFlow 2.0 to 2.21",
    ),
    KnownMistake(
        pattern=r"If \"cluster\" is not set in TF_CONFIG, task type must be WORKER",
        cause='its TF_CONFIG names a task that is no worker, and has no "cluster"',
        fix='echo $TF_CONFIG   # it needs "cluster"; a TFJob with enableDynamicWorker writes '
        '"sparseCluster", which an Estimator does not read: leave that option out',
        sample='If "cluster" is not set in TF_CONFIG, task type must be WORKER.',
        near_miss='If "cluster" is set in TF_CONFIG',
        source="TensorFlow 1.4 to 2.15 (estimator/run_config.py)",
    ),
    KnownMistake(
        pattern=r"`?merge_call`? called while defining a new graph or a tf\.function",
        cause="a tf.function inside strategy.run updates variables (apply_gradients), which needs all "
        "replicas at once",
        fix="put @tf.function around the function that calls strategy.run, and none inside of the step",
        sample="`merge_call` called while defining a new graph or a tf.function. This can often happen if "
        "the function `fn` passed to `strategy.run()` contains a nested `@tf.function`",
        near_miss="called while defining a new graph",
        source="TensorFlow 2.0 to 2.21",
    ),
    KnownMistake(
        pattern=r"(?:Fetching value for|Closing over) `?jax\.Array`? that spans non-addressable",
        cause="the array is spread over the devices of several processes, and one process can read only its "
        "own part",
        fix="multihost_utils.process_allgather(x, tiled=True) in every process; or read "
        "x.addressable_shards; pass such an array to jit as an argument, do not close over it",
        sample="Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not "
        "possible.",
        near_miss="Fetching value for the key 'loss'",
        source="JAX 0.4 to 0.10",
    ),
    KnownMistake(
        pattern=r"distributed\.initialize should only be called once",
        cause="initialize was called twice in one process",
        fix="call it once per process; a library that calls it too: check "
        "jax.distributed.is_initialized() first",
        sample="distributed.initialize should only be called once.",
        near_miss="initialize should be called once per test",
        source="JAX 0.3 to 0.10",
    ),
    KnownMistake(
        pattern=r"TPU initialization failed: open\((?P<device>/dev/(?:accel|vfio/)\w+)\): (?P<why>[\w "
        r"]{1,60})",
        cause="it could not open {device} ({why}): another process of this host holds the TPU, or the "
        "container may not use it",
        fix="sudo lsof -w /dev/accel* /dev/vfio/*   # end a process that is left of an earlier run; in a "
        "container: --privileged, or the TPU as a resource (google.com/tpu)",
        sample="Unable to initialize backend 'tpu': UNKNOWN: TPU initialization failed: open(/dev/accel3): "
        "Operation not permitted: Operation not permitted; Couldn't open device: /dev/accel3",
        near_miss="TPU initialization failed: no devices",
        source="libtpu of JAX 0.4 to 0.10 and PyTorch/XLA 2",
    ),
    KnownMistake(
        pattern=r"slice_builder_worker_addresses specified\. Expected (?P<size>\d+) worker addresses, got "
        r"(?P<count>\d+)",
        cause="this TPU slice has {size} hosts, and the environment of this process lists {count}",
        fix="echo $TPU_WORKER_HOSTNAMES $TPU_PROCESS_ADDRESSES $TPU_PROCESS_BOUNDS   # all {size} hosts, the "
        "same on each; start the program on all of them (gcloud compute tpus tpu-vm ssh NAME --worker=all "
        "--command=...); for one host alone: TPU_PROCESS_BOUNDS=1,1,1 TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1",
        sample="TPU initialization failed: Invalid --2a886c8_slice_builder_worker_addresses specified. "
        "Expected 4 worker addresses, got 1.",
        near_miss="Expected 4 addresses, got 1",
        source="libtpu of JAX 0.4 to 0.10 and PyTorch/XLA 2",
    ),
    KnownMistake(
        pattern=r"Failed to get global TPU topology",
        cause="the hosts of the TPU slice did not find each other, or this host's TPU is not the one that "
        "its environment tells of",
        fix="start the program on all hosts of the slice at once; echo $TPU_WORKER_ID $TPU_WORKER_HOSTNAMES "
        "$TPU_ACCELERATOR_TYPE   # on each: leftovers of another slice mislead it; sudo lsof -w /dev/accel*",
        sample="Unable to initialize backend 'tpu': INTERNAL: Failed to get global TPU topology.",
        near_miss="Failed to get the TPU's name",
        source="libtpu of JAX 0.4 to 0.10 and PyTorch/XLA 2",
    ),
    KnownMistake(
        pattern=r"RET_CHECK failure [^\n]{0,200}(?:local_topology\.devices_size\(\)|gpu_global_device_ids|"
        r"local_device_ordinal)",
        cause="JAX was given GPUs whose numbers it does not count from 0 in this process",
        fix="export CUDA_VISIBLE_DEVICES=$LOCAL_RANK   # before the start, in place of "
        "jax_cuda_visible_devices; or "
        "jax.distributed.initialize(local_device_ids=[...]), with each GPU in one process only",
        sample="INTERNAL: RET_CHECK failure (xla/pjrt/gpu_device.cc:345) local_device->device_ordinal() == "
        "local_topology.devices_size()",
        near_miss="INTERNAL: RET_CHECK failure (xla/service/hlo_verifier.cc:12) shape == other",
        source="XLA's GPU client (JAX 0.3 to 0.4)",
    ),
    KnownMistake(
        pattern=r"The TPU is already in use by (?:process with pid \d+|another process)",
        cause="another process of this host holds the TPU",
        fix="sudo lsof -w /dev/accel* /dev/vfio/*   # end it, or start one process per host "
        "(or set TPU_VISIBLE_CHIPS for each)",
        sample="Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid "
        "4711. Not attempting to load libtpu.so in this process.",
        near_miss="The TPU is in use",
        source="libtpu of JAX 0.4 to 0.10",
    ),
)
"""Mistakes, the more special ones first."""
