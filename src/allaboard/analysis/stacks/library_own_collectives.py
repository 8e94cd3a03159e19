"""Functions of libraries above PyTorch in which a process takes part in a collective of the library's own.

Each row was read in the sources of DeepSpeed 0.9.5, 0.12.6 and 0.16.4, Horovod 0.21.0 and 0.28.1, Lightning
1.5.7, 1.8.0 and 2.6.5, torchmetrics 0.6.0 and 1.9.0, accelerate 0.20.3 and 1.14.0, and Megatron Core 0.8.0,
0.13.1 and 0.19.0; those of transformers 4 and torch_xla 2 are from their documentation. A row that waits
names only functions that call a collective or wait for one, and that run no code of the user's.
"""

from __future__ import annotations

from allaboard.analysis.stacks.own_collective import (
    LIBRARY_ADVICE,
    SHARD_ADVICE,
    STEP_ADVICE,
    OwnCollective,
)

_SYNC_BATCH_NORM_ADVICE = (
    "let all ranks run this line, or model.eval() where one rank runs the model alone"
)
_ZERO = "deepspeed/runtime/zero"
_LIGHTNING = "(?:lightning/(?:pytorch|fabric)|pytorch_lightning|lightning_fabric)"
LIBRARY_COLLECTIVES: tuple[OwnCollective, ...] = (
    OwnCollective("apex/parallel/(?:optimized_)?sync_batchnorm(?:_kernel)?.py"
         "|horovod/(?:torch|tensorflow)/sync_batch_norm.py",
         "forward|backward|call",
         "SyncBatchNorm's exchange of statistics", _SYNC_BATCH_NORM_ADVICE),
    OwnCollective(f"{_ZERO}/partition_parameters.py",
         "wait|_?all_?gather.*|_dist_allgather_fn|_partition_param_sec|_zero_init_param|__exit__",
         "ZeRO's gather of parameters", SHARD_ADVICE),
    OwnCollective(f"{_ZERO}/partition_parameters.py",
         "_reduce_scatter_gradients?",
         "ZeRO's reduction of gradients", STEP_ADVICE),
    OwnCollective(f"{_ZERO}/partitioned_param_coordinator.py",
         "fetch_sub_module|__all_gather_params_?|_clean_inflight_param_registry|release_and_reset_all",
         "ZeRO's gather of parameters", SHARD_ADVICE),
    OwnCollective(f"{_ZERO}/(?:stage3|stage_1_and_2).py",
         "__reduce_and_partition_ipg_grads|__avg_scatter_(?:contiguous_)?grads|allreduce_.*|average_tensor"
         "|gradient_reduction_w_predivide|buffered_reduce_fallback|_fp32_state_allgather",
         "ZeRO's reduction of gradients", STEP_ADVICE),
    OwnCollective(f"{_ZERO}/(?:stage3|stage_1_and_2).py",
         "_model_parallel_all_reduce|get_grad_norm_direct|complete_grad_norm_calculation_for_cpu_offload"
         "|_average_expert_grad_norms|has_overflow",
         "ZeRO's norm of the gradients", STEP_ADVICE),
    OwnCollective("deepspeed/runtime/engine.py",
         "allreduce_.*|buffered_allreduce_fallback|zero_multi_rank_bucket_allreduce|sparse_all_?reduce.*"
         "|sparse_all_gather|_reduce_(?:non_)?expert_gradients|all_gather_scalar",
         "DeepSpeed's reduction of gradients", STEP_ADVICE),
    OwnCollective("deepspeed/runtime/engine.py",
         "_broadcast_model|broadcast_and_check",
         "DeepSpeed's broadcast of the model", "let all ranks call deepspeed.initialize"),
    OwnCollective("deepspeed/runtime/engine.py",
         "_checkpoint_tag_validation|save_checkpoint|load_checkpoint|save_16bit_model|_load_zero_checkpoint"
         "|_create_zero_checkpoint_files|_zero3_consolidated_16bit_state_dict|get_layer_state_dict",
         "DeepSpeed's checkpoint", "let all ranks save and load the checkpoint: each writes its part",
         waits=False),
    OwnCollective("deepspeed/runtime/comm/.*",
         ".*reduce.*|.*gather.*",
         "DeepSpeed's reduction of gradients", STEP_ADVICE),
    OwnCollective("deepspeed/runtime/utils.py",
         "has_overflow|clip_grad_norm_|check_using_norm|all_gather_(?:into_tensor_)?dp_groups"
         "|get_(?:weight_norm|grad_norm|grad_zeros|flattened_grad_norm|global_norm_of_tensors"
         "|norm_with_moe_layers_fast)",
         "DeepSpeed's collective", STEP_ADVICE),
    OwnCollective("deepspeed/moe/(?:mappings|sharded_moe).py",
         "_gather_tokens|gather_tokens|forward|backward|top[12k]gating",
         "the exchange of DeepSpeed's experts", LIBRARY_ADVICE, waits=False),
    OwnCollective("deepspeed/comm/(?:comm|torch|ccl).py",
         "(?:monitored_)?barrier|(?:inference_)?all_reduce.*|reduce(?:_scatter.*)?|all_?gather.*|gather"
         "|broadcast(?:_object_list)?|all_to_all.*|scatter",
         "DeepSpeed's collective", LIBRARY_ADVICE, passes_on=True),
    OwnCollective("horovod/torch/(?:optimizer|functions).py|horovod/mxnet/(?:functions|__init__).py"
         "|horovod/tensorflow/(?:functions|gradient_aggregation(?:_eager)?|__init__).py",
         "synchronize|broadcast_.*|allgather_object|_allreduce.*|_do_allreduce|allreduce_grads",
         "Horovod's collective", LIBRARY_ADVICE, waits=False),
    OwnCollective("horovod/(?:_keras|keras|tensorflow/keras)/callbacks.py",
         "on_.*|_average_metrics_in_place",
         "a Horovod callback's collective", LIBRARY_ADVICE, waits=False),
    OwnCollective(f"{_LIGHTNING}/(?:strategies"
         f"|plugins/training_type)/.*|{_LIGHTNING}/utilities/distributed.py",
         "barrier|broadcast|reduce.*|.*gather.*|_?sync_ddp.*",
         "Lightning's collective", LIBRARY_ADVICE, waits=False),
    OwnCollective("torchmetrics/metric.py"
         f"|torchmetrics/utilities/distributed.py|{_LIGHTNING}/.*/logger_connector/result.py",
         "_?sync(?:_dist)?|gather_all_tensors|_simple_gather_all_tensors",
         "the synchronisation of a metric", LIBRARY_ADVICE, waits=False),
    OwnCollective("accelerate/(?:accelerator|state|utils/operations|utils/other|utils/fsdp_utils).py",
         "wait_for_everyone|_?gpu_gather.*|_?gather.*|_?(?:gpu_)?broadcast.*|reduce|_reduce_.*"
         "|save_state|save_model|get_state_dict|pad_across_processes|save_fsdp_.*",
         "accelerate's collective", LIBRARY_ADVICE, waits=False),
    OwnCollective("accelerate/(?:utils/random|data_loader).py",
         "synchronize_rng_states?|_fetch_batches",
         "accelerate's synchronisation of the data order", LIBRARY_ADVICE, waits=False),
    OwnCollective("transformers/(?:trainer|trainer_pt_utils).py",
         "_nested_gather|nested_gather|distributed_concat|_gather_and_numpify",
         "the Trainer's gather of results", LIBRARY_ADVICE, waits=False),
    OwnCollective("megatron/core/distributed/.*",
         "finish_(?:grad|param)_sync|wait",
         "Megatron's reduction of gradients", STEP_ADVICE),
    OwnCollective("megatron/core/distributed/.*",
         ".*grad_sync|.*param_sync|broadcast_params|finalize_model_grads|_?all_?reduce.*|_?all_?gather.*"
         "|_?reduce_.*|_bucket_group_gradient_reduce|_update_router_.*|wait_.*",
         "Megatron's collective", STEP_ADVICE, waits=False),
    OwnCollective("megatron/core/optimizer/.*",
         "get_grad_norm.*|count_zeros.*|_unscale_main_grads_and_check_for_nan|_?all_?gather.*"
         "|broadcast_params|(?:get|load)_parameter_state.*|(?:start|finish)_param_sync",
         "Megatron's collective", STEP_ADVICE, waits=False),
    OwnCollective("megatron/core/tensor_parallel/(?:mappings|layers|cross_entropy|data|utils).py",
         "_reduce.*|reduce_.*|_?gather_.*|_?all_to_all.*|broadcast_data"
         "|_build_key_size_numel_dictionaries|forward|backward",
         "Megatron's collective", LIBRARY_ADVICE, waits=False),
    OwnCollective("megatron/core/pipeline_parallel/(?:p2p|bridge)_communicat(?:ion|or).py",
         "_communicate.*|_p2p_ops|_batched_p2p_ops|_ring_exchange_wrapper|_run_batched_payload_p2p",
         "a message of Megatron's pipeline", LIBRARY_ADVICE, is_message=True),
    OwnCollective("torch_xla/core/xla_model.py",
         "rendezvous|mesh_reduce|all_reduce|all_gather|reduce_gradients|wait_device_ops|mark_step",
         "torch_xla's collective", LIBRARY_ADVICE),
)  # fmt: skip
