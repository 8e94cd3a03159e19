"""Checkpoints and evaluations of a loop in plain PyTorch. Hooked and tried on torch 2.13.

A checkpoint is what `torch.save` and `torch.distributed.checkpoint`, which also reads one together, do in the
main thread. An evaluation is what the main thread does without gradients while the model that is trained
(one that holds all parameters of an optimizer) is in eval mode: a teacher, a frozen part or features that are
extracted in each step are none. `torch.load` is not told: data sets of many small files are read with it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from _thread import get_ident

from ... import hooks, member
from ...layout import CHECKPOINT, EVALUATION
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...blackbox import Box


class _Evaluation:
    """The model that was put into eval mode last, and whether it is being evaluated now."""

    def __init__(self) -> None:
        # Weak, all three: what the program lets go of must go.
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.trained_models: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self.model: weakref.ref[Any] | None = None
        self.has_begun = False
        self.box: Box | None = None
        self.thread = 0
        self.waited = 0.0, 0.0
        # bool() is False: before `torch.compiler` is there, nothing is compiled.
        self.compiling: Callable[[], bool] = bool

    def mark_optimizer_made(self, optimizer: Any) -> None:
        self.optimizers.add(optimizer)
        # The new one may hold the parameters of a model that was found to be untrained.
        self.trained_models.clear()

    def chosen(self, model: Any, gradients: bool) -> None:
        """The model is in eval mode now."""
        if member.here.box is None or self.box is not None:
            return
        if model not in self.trained_models:
            self.trained_models[model] = self._trains(model)
        if self.trained_models[model]:
            self.model, self.has_begun = weakref.ref(model), False
            if not gradients:
                self.begin()

    def _trains(self, model: Any) -> bool:
        parameter_ids = {id(p) for p in model.parameters()}
        for optimizer in list(self.optimizers):
            ids = [id(p) for group in optimizer.param_groups for p in group["params"]]
            if ids and parameter_ids.issuperset(ids):
                return True
        return False

    def begin(self) -> None:
        """Gradients are off from here on."""
        box = member.here.box
        if box is None or get_ident() != box.ident or member.here.is_pausing:
            return
        model = self.model() if self.model is not None else None
        if model is None or model.training:
            self.model = None
            return
        self.box, self.thread, self.waited = box, get_ident(), (box.input, box.sync)
        member.here.is_pausing = True
        box.begin_aside(EVALUATION, 0 if self.has_begun else 1)
        self.has_begun = True

    def end(self) -> None:
        """Gradients are on again."""
        box, self.box = self.box, None
        member.here.is_pausing = False
        if box is not None:
            box.end_aside(EVALUATION)
            box.input, box.sync = self.waited


_now = _Evaluation()


def trains() -> None:
    """A backward begins: the evaluation is over, also where gradients were switched on by a function."""
    if _now.box is not None and get_ident() == _now.thread:
        enabled: Callable[[], bool] = sys.modules["torch"].is_grad_enabled
        if enabled():
            _now.end()


def gradients(module: Any) -> None:
    """Hooks `torch.autograd.grad_mode`: where gradients are switched off and on for a block."""
    enabled = sys.modules["torch"].is_grad_enabled
    for name in ("no_grad", "inference_mode", "set_grad_enabled"):
        cls = getattr(module, name, None)
        if cls is not None and "__enter__" in cls.__dict__ and "__exit__" in cls.__dict__:
            cls.__enter__ = _entering(cls.__enter__, enabled)
            cls.__exit__ = _leaving(cls.__exit__, enabled)
        else:
            member.here.lacks(module.__name__, "block " + name)


def _entering(call: Callable[..., Any], enabled: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(call)
    def __enter__(self: Any) -> Any:
        result = call(self)
        if _now.model is not None and _now.box is None:
            try:
                if not enabled():
                    _now.begin()
            except Exception as error:
                reraise_from_handler(error)
                _now.model = None
        return result

    return __enter__


def _leaving(call: Callable[..., Any], enabled: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(call)
    def __exit__(self: Any, *raised: Any) -> Any:
        result = call(self, *raised)
        if _now.box is not None and get_ident() == _now.thread and enabled():
            _now.end()
        return result

    return __exit__


def modules(module: Any) -> None:
    """Hooks `torch.nn.modules.module`: which model is in eval mode."""
    cls = module.Module
    call = cls.eval
    enabled = sys.modules["torch"].is_grad_enabled

    @functools.wraps(call)
    def eval(self: Any) -> Any:
        result = call(self)
        if _now.compiling():
            return result
        try:
            _now.chosen(self, enabled())
        except Exception as error:
            reraise_from_handler(error)
            _now.model = None
        return result

    cls.eval = eval


def compiler(module: Any) -> None:
    """Hooks `torch.compiler`: whether a compiler only looks what would be called."""
    _now.compiling = getattr(module, "is_dynamo_compiling", _now.compiling)


def optimizer(module: Any, on_created: Callable[[], object]) -> None:
    """Hooks `torch.optim.optimizer`: which optimizers there are. Without one nothing is an evaluation.
    ``on_created`` is called for each."""
    cls = getattr(module, "Optimizer", None)
    if cls is None:
        return
    call = cls.__init__

    @functools.wraps(call)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        on_created()
        call(self, *args, **kwargs)
        try:
            _now.mark_optimizer_made(self)
        except Exception as error:
            reraise_from_handler(error)

    cls.__init__ = __init__


def _saving(*names: str, more: int = 1) -> Callable[[Any], None]:
    def hook(module: Any) -> None:
        for name in names:
            call = getattr(module, name, None)
            if call is not None:
                setattr(module, name, hooks.aside(CHECKPOINT, call, more))
            else:
                member.here.lacks(module.__name__, name)

    return hook


MODULES = {
    "torch.serialization": _saving("save"),
    "torch.distributed.checkpoint.state_dict_saver": _saving("save", "async_save"),
    "torch.distributed.checkpoint.state_dict_loader": _saving("load", more=0),
    "torch.autograd.grad_mode": gradients,
    "torch.nn.modules.module": modules,
    "torch.compiler": compiler,
}
