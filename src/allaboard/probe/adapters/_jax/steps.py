"""Steps of a plain JAX loop, by the hook that jit's own dispatch calls after each call (it is where
`jax_debug_nans` looks at results). Hooked and tried on jax 0.10.

What is called is not replaced, and dispatch stays in C++. A step is a call of one jitted function of the
program (not of JAX's own): of the one that takes most of what it gave the last time, as parameters and
optimizer states are; where none does, of the one that is called. Others count as movement. What such a call
waits for shows in the results: see `waits`. A call that compiles, or that has no fast path (callbacks,
`jax.debug.print`), goes through Python and is seen there.
"""

from __future__ import annotations

import functools
import sys
import weakref

from ... import member
from ...collective_calls import FOREIGN
from ...signal_errors import reraise_from_handler
from . import arrays
from .global_calls import MAX_JUDGED_CALLS, GlobalCalls
from .losses import Returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ...blackbox import Box, Slot

MAX_FUNCTIONS = 1024
"""Functions that are told apart: a program that jits anew in every step must not fill the memory."""
FOLLOWED_CALLS = 3
"""Calls of a function whose results are followed into its next one."""
MAX_FRAMES = 40
"""Frames between a jitted call and the program's own line that are walked through."""
MAX_SITES = 8
"""Changes of the calling line that are noted: a step that two lines call in turn would be noted for ever."""
PLACE = "jitted at"
BY = "jitted by"
"""The line that makes the call, where that is a library's (`jax.pmap`, `nnx.jit`) for the program's."""


_LIBRARY_PATHS = (*FOREIGN, "/allaboard/probe/")


class _Jitted:
    """One jitted function: how often it was called, and how many of its results it was given again."""

    __slots__ = (
        "calls",
        "carried_over",
        "is_programs_own",
        "label",
        "name",
        "processes",
        "references",
        "returned",
    )

    def __init__(self, fun: Any) -> None:
        self.references: dict[int, Any] = {}
        is_pmap = _is_pmap(fun)
        self.is_programs_own = is_pmap or not _is_of_jax(fun)
        self.name = "jit %s" % ("pmap" if is_pmap else getattr(fun, "__name__", ""))
        self.label = self.name.encode()[:60]
        self.processes: tuple[int, ...] | None = None
        """The processes that take part in its calls; () if it is this one alone, or it differs, None if that
        is not known yet."""
        self.calls = 0
        self.carried_over = 0
        """Most arrays that one call was given of those that the call before had returned."""
        self.returned: list[Any] = []
        """Weak references to the arrays that the last call returned, while it is followed."""


def _is_of_jax(fun: Any) -> bool:
    """Return True for a function of JAX itself."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__module__", None) or type(fun).__module__
    return str(name).split(".")[0] in ("jax", "jaxlib")


def _is_pmap(fun: Any) -> bool:
    """Return True for what `jax.pmap` jits: a function of JAX around one of the program."""
    return getattr(fun, "__module__", None) == "jax._src.pmap"


class Steps:
    """Called after each call of a jitted function; ``leaves`` takes a tree of arrays apart."""

    def __init__(self, leaves: Callable[[Any], list[Any]]) -> None:
        self._leaves = leaves
        self._known: dict[int, _Jitted] = {}
        self._step: _Jitted | None = None
        self._other_calls = 0
        """Calls of other functions since the step was last called."""
        self._last_site: tuple[object, int] | None = None
        self._noted_sites = 0
        self._returned = Returned()
        self._global_calls = GlobalCalls()
        self._counted_call: object = None
        """The jitted function whose call was counted before it was made."""

    def begin(self, fun: Any, args: Any) -> None:
        """Count a call that may compile before it is made: what it waits for keeps it from coming back."""
        try:
            jitted, box = self._known.get(id(fun)), member.here.box
            if jitted is not None and box is not None:
                self._global_calls.judge_arguments(jitted, self._leaves(args))
                if jitted.processes:
                    self._global_calls.note(box, jitted, sys._getframe(2))
                    self._counted_call = jitted
        except Exception as error:
            reraise_from_handler(error)  # else as in `__call__`

    def _count(self, box: Box, jitted: _Jitted, output: Any, frame: FrameType) -> None:
        counted, self._counted_call = self._counted_call, None
        if jitted.calls <= MAX_JUDGED_CALLS:
            self._global_calls.judge_result(jitted, self._leaves(output))
        if counted is not jitted:
            self._global_calls.note(box, jitted, frame)

    def __call__(self, fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        box = member.here.box
        if box is None:
            return
        try:
            jitted = self._known.get(id(fun)) or self._learn(fun)
            if jitted is None or not jitted.is_programs_own:
                return
            slot = box.slot()
            # Within another operation, which shows already what this thread does.
            if slot is None or not slot.main or slot.depth:
                return
            jitted.calls += 1
            self._count(box, jitted, output, sys._getframe(1))
            if jitted.calls <= FOLLOWED_CALLS + 1 and not member.here.steps_told:
                self._follow(jitted, (args, kwargs), output)
            if member.here.steps_told:
                _show(slot, jitted.label)
                if self._step is None and jitted.calls > FOLLOWED_CALLS:
                    self._step = jitted  # which shows where the program makes its library's steps
                if jitted is self._step:
                    self._note_call_site(sys._getframe(1))
                    self._returned.add_result(box, jitted, box.steps + 1, output)
            elif jitted is self._step:
                self._other_calls = 0
                member.step()
                self._note_call_site(sys._getframe(1))
                self._returned.add_result(box, jitted, box.steps, output)
            else:
                self._consider_as_step(jitted)
                _show(slot, jitted.label)
        except Exception as error:
            reraise_from_handler(error)
            # This runs inside the program's call: whatever is wrong with us is not raised there.
            self._known.clear()

    def label(self, fun: Any) -> bytes | None:
        """Return the name under which a function is shown; None for one of JAX itself."""
        try:
            jitted = self._known.get(id(fun)) or self._learn(fun)
        except Exception as error:
            reraise_from_handler(error)
            return None
        return jitted.label if jitted is not None and jitted.is_programs_own else None

    def _learn(self, fun: Any) -> _Jitted | None:
        if len(self._known) >= MAX_FUNCTIONS:
            return None
        inner = getattr(fun, "__wrapped__", fun)
        jitted = self._known.get(id(inner)) or _Jitted(inner)
        for part in (fun, inner):
            # Not kept alive: it may hold arrays. When it goes, another may get its id.
            try:
                if id(part) not in jitted.references:
                    jitted.references[id(part)] = weakref.ref(
                        part, functools.partial(self._forget, id(part))
                    )
            except TypeError:
                return None
            self._known[id(part)] = jitted
        return jitted

    def _forget(self, number: int, _: object) -> None:
        jitted = self._known.pop(number, None)
        if jitted is not None:
            jitted.references.pop(number, None)

    def _follow(self, jitted: _Jitted, arguments: Any, output: Any) -> None:
        """Count how many of the arrays that the function returned last time it was given now."""
        returned_ids = {id(a) for r in jitted.returned if (a := r()) is not None}
        if returned_ids:
            jitted.carried_over = max(
                jitted.carried_over, sum(id(a) in returned_ids for a in self._leaves(arguments))
            )
        jitted.returned = []
        if jitted.calls <= FOLLOWED_CALLS:
            jitted.returned = [weakref.ref(a) for a in self._leaves(output) if arrays.is_array(a)]

    def _consider_as_step(self, jitted: _Jitted) -> None:
        """Make this function the step if it carries more arrays over, or as many and is the only
        one called."""
        current = self._step
        self._other_calls += 1
        if current is None:
            fits = jitted.carried_over > 0 or self._other_calls >= FOLLOWED_CALLS
        else:
            # Three quarters of the arrays count as many.
            carries_as_many = 4 * jitted.carried_over >= 3 * current.carried_over
            is_only_one = self._other_calls >= FOLLOWED_CALLS and carries_as_many
            fits = jitted.carried_over > current.carried_over or is_only_one
        if fits and jitted.calls >= 2:
            self._step, self._other_calls = jitted, 0

    def _note_call_site(self, frame: FrameType) -> None:
        """Note the line where the step is called: a thread that waits in there shows no frame
        further in."""
        if self._last_site == (frame.f_code, frame.f_lineno) or self._noted_sites > MAX_SITES:
            return
        self._last_site = frame.f_code, frame.f_lineno
        self._noted_sites += 1
        line, user = _location(frame), _user_frame(frame)
        if user is not None:
            member.here.notes[BY] = "" if user is frame else line
            member.here.note(PLACE, line if user is frame else _location(user))


def _location(frame: FrameType) -> str:
    return "%s:%d" % (frame.f_code.co_filename[-180:], frame.f_lineno)


def _user_frame(frame: FrameType) -> FrameType | None:
    """Return the innermost frame of the program itself."""
    candidate: FrameType | None = frame
    for _ in range(MAX_FRAMES):
        if candidate is None or not any(
            part in candidate.f_code.co_filename for part in _LIBRARY_PATHS
        ):
            return candidate
        candidate = candidate.f_back
    return None


class _State:
    """Stands where JAX keeps its own hook, so that ours is called whether or not JAX's is."""

    def __init__(self, state: Any, ours: Callable[..., None]) -> None:
        self._state = state
        self._ours = ours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def set_global(self, hook: Any) -> None:
        self._state.set_global(self._with_ours(hook) if hook is not None else self._ours)

    def set_local(self, hook: Any) -> None:
        # A thread's own "none" would hide what is set for all.
        self._state.set_local(self._with_ours(hook) if hook is not None else self._ours)

    def _with_ours(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        ours = self._ours

        @functools.wraps(theirs)
        def both(fun: Any, args: Any, kwargs: Any, output: Any) -> Any:
            ours(fun, args, kwargs, output)
            return theirs(fun, args, kwargs, output)

        return both


_steps: list[Steps] = []


def _hide_from_messages() -> None:
    """Keep JAX's messages and profiles from naming our frames as the program's: they name the innermost frame
    that is not JAX's own."""
    for name in ("source_info_util", "traceback_util"):
        try:
            sys.modules["jax._src." + name].register_exclusion(__file__)
        except Exception:
            pass


def _show(slot: Slot, label: bytes) -> None:
    """Show the thread inside a function and out of it again."""
    try:
        slot.enter(label)
    finally:
        slot.leave(label)


def api(module: Any) -> None:
    """Hook `jax._src.api`."""
    state = getattr(module, "_post_hook_state", None)
    if state is None or not hasattr(state, "set_global"):
        member.here.lacks("jax._src.api", "_post_hook_state")
        return
    _steps.append(Steps(module.tree_leaves))
    hook_before = getattr(state, "value", None)
    module._post_hook_state = _State(state, _steps[0])
    module._post_hook_state.set_global(hook_before)


def slow(module: Any) -> None:
    """Hook `jax._src.pjit`: calls that compile, or have no fast path."""
    call = getattr(module, "_run_python_pjit", None)
    if call is None:
        member.here.lacks("jax._src.pjit", "_run_python_pjit")
        return

    core = getattr(module, "core", None)
    _hide_from_messages()

    @functools.wraps(call)
    def _run_python_pjit(p: Any, flat: Any, fun: Any, args: Any, kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None and _steps else None
        label = _steps[0].label(fun) if slot is not None and not slot.depth else None
        if slot is None or label is None or not slot.main or arrays.staged(core):
            return call(p, flat, fun, args, kwargs)
        _steps[0].begin(fun, (args, kwargs))
        try:
            slot.enter(label)
            result = call(p, flat, fun, args, kwargs)
        finally:
            slot.leave(label)
        _steps[0](fun, args, kwargs, result[0])
        return result

    module._run_python_pjit = _run_python_pjit
