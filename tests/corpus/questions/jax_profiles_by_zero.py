import jax


def profiler_enabled(config):
    return config.enable_profiler and jax.process_index() == 0


@jax.jit
def denoise(state, mesh):
    return jax.lax.psum(state, "data")


def call_pipeline(pipeline, config):
    return pipeline(config.prompt)


def run(config, pipeline):
    jax.distributed.initialize()
    call_pipeline(pipeline, config)
    if profiler_enabled(config):
        with jax.profiler.trace(config.out):
            videos = call_pipeline(pipeline, config)
    else:
        videos = None
    return videos
