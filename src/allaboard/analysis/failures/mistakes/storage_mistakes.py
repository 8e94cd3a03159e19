"""Files that a rank cannot read, or has none of: checkpoints of several ranks, shards, parquet.

All ranks read one folder. What one of them does not find there was mostly never written, or lies on the disk
of another host.
"""

from __future__ import annotations

from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake

_LIST_IT = (
    "ls -la FOLDER   # of the checkpoint, on the host of each rank: is it one folder for all, and was it "
    "written to its end? Else resume from the checkpoint before"
)
_SAME_TREE = (
    "compare the model, the optimizer and their options with those of the run that saved it (frozen or added "
    "layers, LoRA, another version of the library, weights without an optimizer); or load what both have: "
)
_SHARDS = (
    "ls the shards as this rank sees them; as many shards as ranks times loader workers, at least, or "
    "resampled=True; num_workers lower than the shards of a rank"
)

STORAGE_MISTAKES = (
    KnownMistake(
        pattern=r"checkpoint being loaded used a DP world size of (?P<saved>\d+) but the current world size "
        r"is (?P<now>\d+)",
        cause="the checkpoint has the optimizer's state in parts of {saved} data-parallel ranks, and here "
        "are {now}",
        fix="start it with as many data-parallel ranks as saved it ({saved}); or make one that any number "
        "can load: python -m deepspeed.checkpoint.ds_to_universal --input_folder CHECKPOINT --output_folder "
        'NEW, and "checkpoint": {{"load_universal": true}}; or load the weights alone: '
        "load_checkpoint(..., load_optimizer_states=False)",
        sample="The checkpoint being loaded used a DP world size of 12 but the current world size is 6. "
        "Automatic adjustment of ZeRO's optimizer state partitioning with a new world size is not currently "
        "supported.",
        near_miss="The checkpoint being loaded used a vocabulary of 12 but the current one is 6",
        source="DeepSpeed, as quoted in its issues",
    ),
    KnownMistake(
        pattern=r"copying a param with shape torch\.Size\(\[\d[\d, ]*\]\) from checkpoint, the shape in "
        r"current model is torch\.Size\(\[0\]\)",
        cause="the parameters of this model are empty, as ZeRO-3 leaves those that it has split among the "
        "ranks, and the weights are loaded as if they were whole",
        fix="with deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0): "
        "model.load_state_dict(...) on rank 0   # all ranks enter it; or load before the model is split, "
        "outside of zero.Init (transformers: the versions of transformers, accelerate and deepspeed that "
        "know this model); or ZeRO-2",
        sample="Error(s) in loading state_dict for Net: size mismatch for proj.bias: copying a param with "
        "shape torch.Size([96]) from checkpoint, the shape in current model is torch.Size([0]).",
        near_miss="size mismatch for proj.bias: copying a param with shape torch.Size([96]) from checkpoint, "
        "the shape in current model is torch.Size([64]).",
        source="PyTorch (nn/modules/module.py), as reported with DeepSpeed's ZeRO-3",
    ),
    KnownMistake(
        pattern=r"File exists: '(?P<path>[^'\n]{1,400}\.orbax-checkpoint-tmp[^'\n]{0,100})'",
        cause="the temporary folder of this checkpoint is there already: a save was cut off and left it, or "
        "two processes save to one folder (each takes itself for process 0, or two jobs run)",
        fix="print(jax.process_index(), jax.process_count())   # in each process: its own number; then, "
        "while no job saves there, remove the *.orbax-checkpoint-tmp* folders, or save to a new folder",
        sample="[Errno 17] File exists: '/d/run/500.orbax-checkpoint-tmp-0'",
        near_miss="[Errno 17] File exists: '/d/run/500'",
        source="the folder's name from Orbax; the exception is Python's",
    ),
    KnownMistake(
        pattern=r"^assert (?:metadata|self\.metadata|storage_metadata) is not None"
        r"|is not a distributed checkpoint|Checkpoint metadata not found"
        r"|Cannot find (?:global shape )?metadata",
        cause="the folder has no distributed checkpoint that is whole: its metadata, which is written last "
        "(.metadata, or metadata.json of Megatron), is not there",
        fix=f"{_LIST_IT}; it must have .metadata beside the files of the ranks (__0_0.distcp)",
        sample="/ckpt/iter_0001000 is not a distributed checkpoint",
        near_miss="assert metadata['step'] == 3",
        source="PyTorch 2.1 to 2.13 (distributed/checkpoint), Megatron-Core 0.4 to 0.15 (dist_checkpointing)",
    ),
    KnownMistake(
        pattern=r"(?P<what>Missing key in checkpoint state_dict: [^\n]{1,160}?)\.?$",
        cause="the model or the optimizer asks for what the checkpoint does not hold: {what}",
        fix=f"{_SAME_TREE}DefaultLoadPlanner(allow_partial_load=True), or without the optimizer's part of "
        "the checkpoint (--no-load-optim, --finetune)",
        sample="Missing key in checkpoint state_dict: optimizer.param_groups.weight.fused.",
        near_miss="Missing key in the configuration: lr",
        source="PyTorch 2.1 to 2.13 (distributed/checkpoint/default_planner.py)",
    ),
    KnownMistake(
        pattern=r"(?P<what>Size mismatch between saved [^\n]{1,160}|Global shape mismatch for loaded"
        r"[^\n]{1,160}|Requested restore shape[^\n]{1,160})",
        cause="the checkpoint was saved of a model with other sizes: {what}",
        fix=f"{_SAME_TREE}with the same vocabulary (padded to the tensor-parallel size) and layers",
        sample="Size mismatch between saved torch.Size([50304, 64]) and current: torch.Size([50432, 64]) for "
        "model.embedding.weight",
        near_miss="Size mismatch between the two images",
        source="PyTorch 2.3 to 2.13 (default_planner.py), Megatron-Core 0.4 to 0.15",
    ),
    KnownMistake(
        pattern=r"(?P<what>[Ss]harding passed to deserialization should be specified[^\n]{0,80}"
        r"|User-provided restore item and on-disk (?:value|item)[^\n]{0,120}"
        r"|available devices are different from the devices used to save[^\n]{0,40})",
        cause="the checkpoint was saved on other devices, or of another tree than is restored: {what}",
        fix="restore with a target that says the shape and the sharding of every array on the devices of "
        "now: StandardRestore(jax.tree.map(ocp.utils.to_shape_dtype_struct, state)), or "
        "restore_args=ocp.checkpoint_utils.construct_restore_args(target)",
        sample="sharding passed to deserialization should be specified, concrete and an instance of "
        "`jax.sharding.Sharding`. Got None",
        near_miss="sharding passed to jit: P('data')",
        source="Orbax 0.2 to 0.11",
    ),
    KnownMistake(
        pattern=r"Unsuccessful TensorSliceReader constructor: Failed to (?:find any matching files for"
        r"|get matching files on) (?P<path>[^\s:]{1,300})"
        r"(?=.{0,600}?_device=\"/job:(?P<job>\w+)(?:/replica:\d+)?/task:(?P<task>\d+))",
        cause="{path} is not there on the host of {job} {task}, which reads it: whoever saved it may have "
        "written to another host's disk",
        fix="ls -l {path}*   # on the host of that task, and of the chief: save to a folder that all hosts "
        "reach (NFS, hdfs://, gs://)",
        sample="Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
        '/tmp/logs/model.ckpt-24\n\t [[Node: save/RestoreV2_3 = RestoreV2[_device="/job:ps/replica:0'
        '/task:0/cpu:0"](save/Const)]]',
        near_miss="Unsuccessful TensorSliceReader constructor: Failed to read the index",
        source="TensorFlow 0.8 to 2.21 (tensor_slice_reader.cc)",
    ),
    KnownMistake(
        pattern=r"Unsuccessful TensorSliceReader constructor: Failed to (?:find any matching files for"
        r"|get matching files on) (?P<path>[^\s:]{1,300})",
        cause="{path} is not there on the host of the task that reads it",
        fix="ls -l {path}*   # on the host of every task that reads: save to a folder that all hosts reach "
        "(NFS, hdfs://, gs://); does the file `checkpoint` beside it name another place?",
        sample="Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
        "/tmp/logs/model.ckpt-24",
        near_miss="Unsuccessful TensorSliceReader constructor: Failed to read the index",
        source="TensorFlow 0.8 to 2.21 (tensor_slice_reader.cc)",
    ),
    KnownMistake(
        pattern=r"explicit nodesplitter|input pipeline needs to be reconfigured for multi-?node",
        cause="WebDataset does not know how the ranks are to share the shards",
        fix="wds.WebDataset(URLS, nodesplitter=wds.split_by_node); in a DataPipeline wds.split_by_node and "
        "wds.split_by_worker behind the list of shards; or resampled=True, and with_epoch(N) for all ranks "
        "alike",
        sample="you need to add an explicit nodesplitter to your input pipeline for multi-node training",
        near_miss="the nodesplitter found 8 nodes",
        source="webdataset 0.1 to 1.0 (shardlists.py)",
    ),
    KnownMistake(
        pattern=r"No samples found in dataset; perhaps you have fewer shards than workers|"
        r"[Nn]umber of shards? \(?\d*\)?(?: is)? (?:less|fewer|smaller) than",
        cause="this rank, or one of its loader's workers, has no shard at all",
        fix=_SHARDS,
        sample="No samples found in dataset; perhaps you have fewer shards than workers.",
        near_miss="No samples were dropped from the dataset",
        source="webdataset 0.1 to 1.0 (filters.py, compat.py)",
    ),
    KnownMistake(
        pattern=r"Could not find _common_metadata file|reading only Petastorm datasets"
        r"|Not a Petastorm dataset",
        cause="the folder of parquet files was not written by Petastorm: it has no _common_metadata",
        fix="read it with make_batch_reader, which needs none; or write it: petastorm-generate-metadata.py "
        "--dataset_url URL --unischema_class MODULE.SCHEMA",
        sample="Could not find _common_metadata file. Use materialize_dataset(..) in "
        "petastorm.etl.dataset_metadata.py to generate this file in your ETL code.",
        near_miss="Could not find the metadata of the run",
        source="Petastorm 0.7 to 0.12 (etl/dataset_metadata.py)",
    ),
    KnownMistake(
        pattern=r"list index out of range",
        raised_in=r"training_utils\w*\.py [^:]*: self\.results\[0\]",
        cause="this rank evaluated or trained on no batch at all: its part of the data is empty",
        fix="count the batches of every rank: fewer files than ranks leave some without; dataset.repeat() "
        "with the same steps_per_epoch on all ranks, or split by element and not by file",
        sample="list index out of range",
        sample_frame=(
            "/v/site-packages/tensorflow/python/keras/engine/training_utils.py",
            "self.results[0] /= self.num_samples_or_steps",
        ),
        near_miss="list index out of bounds",
        source="Keras of TensorFlow 1.13 to 2.1 (engine/training_utils.py)",
    ),
)
"""Mistakes, the more special ones first."""
