from accelerate import Accelerator, notebook_launcher
from accelerate.utils import gather_object


def grade(prompts):
    state = Accelerator()
    with state.split_between_processes(prompts) as mine:
        texts = [p.upper() for p in mine]
    if state.is_main_process:
        print(gather_object(texts)[0])
        print(gather_object(texts)[1])


notebook_launcher(grade, args=(["a", "b"],), num_processes=2)
