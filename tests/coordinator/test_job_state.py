"""The state of a job under a fake clock: no socket, no process, no sleep."""

from __future__ import annotations

from allaboard.blackbox.snapshot import BoxReading
from allaboard.clock import FakeClock
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Frame, Op, Outcome, Phase, Raised
from allaboard.facts.samples import REDUCE, USER, sample_declaration
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import AnnounceFinding, Command, EndJob, OpenGate, SampleStacks
from allaboard.protocol.events import (
    AgentInterrupted,
    AgentOverslept,
    Event,
    GateOpened,
    ProcessExited,
    ProcessSampled,
    StackSampled,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

SPIN = Frame("/home/u/train.py", 33, "wait_for_flag", "while not flag:")


class World:
    """Three workers and a clock; says what the job answers."""

    def __init__(self, workers: int = 3, **policy: object) -> None:
        self.clock = FakeClock()
        settings = JobSettings(launched=workers, host="a", policy=EndPolicy(**policy))  # type: ignore[arg-type]
        self.job = JobState(settings, self.clock.now, load_catalogue().entries, self.clock.utc)
        self.boxes: dict[int, BoxReading] = {}
        self.gone: set[int] = set()
        self.state = dict.fromkeys(range(workers), "S")
        self.cpu = dict.fromkeys(range(workers), 0.0)
        self.said: list[Command] = []
        for worker in range(workers):
            self.tell(WorkerLaunched(worker=worker, pid=100 + worker, launched_at=self.clock.now))
            self.put(worker, Phase.STARTED)

    def put(self, worker: int, phase: Phase, **fields: object) -> None:
        known = {"phase": int(phase), "phase_since": self.clock.now, "round": 0} | fields
        self.boxes[worker] = BoxReading(**known)  # type: ignore[arg-type]

    def arrive(self, *workers: int, size: int = 3) -> None:
        for worker in workers:
            self.put(worker, Phase.ARRIVED, round=1, declared=sample_declaration(worker, size))

    def train(self, *workers: int, step: int, **fields: object) -> None:
        for worker in workers:
            known = {"round": 1, "declared": sample_declaration(worker), "step": step, "ops": step}
            known |= {"intervals": (0.1,) * 5, "phase_since": 1000.0}
            self.put(worker, Phase.TRAINING, **(known | fields))

    def tell(self, *events: Event) -> list[Command]:
        now = self.clock.now
        looks = [
            ProcessSampled(
                pid=100 + w, worker=w, sampled_at=now, state=self.state[w], cpu=self.cpu[w], box=box
            )
            for w, box in self.boxes.items()
            if w not in self.gone
        ]
        answer = self.job.handle(now, *events, *looks)
        self.said += answer
        return answer

    def wait(self, seconds: float, stacks: dict[int, tuple[Frame, ...]] | None = None) -> None:
        """Time goes by in ticks of 0.25 s; asked for stacks, the world shows these."""
        for _ in range(int(seconds / 0.25)):
            self.clock.advance(0.25)
            for command in self.tell():
                if isinstance(command, SampleStacks) and stacks:
                    self.tell(*(self.looked(p - 100, stacks) for p in command.pids))

    def looked(self, worker: int, stacks: dict[int, tuple[Frame, ...]]) -> StackSampled:
        return StackSampled(
            pid=100 + worker,
            sampled_at=self.clock.now,
            frames=stacks.get(worker, (REDUCE, USER)),
            by="faulthandler",
            cpu=self.cpu[worker],
        )

    @property
    def rules(self) -> list[str]:
        return [c.finding.rule for c in self.said if isinstance(c, AnnounceFinding)]

    @property
    def end(self) -> EndJob | None:
        return next((c for c in self.said if isinstance(c, EndJob)), None)


def test_nobody_passes_before_all_are_here() -> None:
    world = World()
    world.arrive(0, 1)
    assert not any(isinstance(c, OpenGate) for c in world.tell())
    world.arrive(2)
    let = {(c.pid, c.round) for c in world.tell() if isinstance(c, OpenGate)}
    assert let == {(100, 1), (101, 1), (102, 1)}


def test_a_live_worker_extends_the_deadline() -> None:
    world = World()
    world.arrive(0, 1)
    world.wait(300)
    assert world.end is None
    assert world.rules == ["JOIN002"]


def test_a_member_never_heard_of_ends_the_roll_call_at_the_deadline() -> None:
    world = World()
    world.arrive(0, 1, 2, size=4)
    world.wait(59)
    assert world.end is None and world.rules == []
    world.wait(2)
    assert world.end is not None and world.end.outcome is Outcome.ROLL_CALL_FAILED
    assert world.rules == ["JOIN001"]


def test_a_death_before_init_waits_for_somebody_who_waits() -> None:
    world = World()
    world.gone.add(1)
    world.tell(ProcessExited(pid=101, exited_at=world.clock.now, code=1))
    assert world.rules == [] and world.end is None
    world.arrive(0)
    world.tell()
    assert world.rules == ["JOIN003"]
    assert world.end is not None and world.end.outcome is Outcome.ROLL_CALL_FAILED


def test_observe_holds_and_ends_nothing() -> None:
    world = World(only_observes=True)
    world.arrive(0, 1, 2, size=4)
    world.wait(200)
    assert world.end is None
    assert not any(isinstance(c, SampleStacks) for c in world.said)


def test_a_stopped_worker_is_named_within_two_seconds() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.state[1] = "T"
    world.wait(2)
    assert world.rules == ["HANG001"]
    assert world.end is None, "report is the default"


def test_who_was_stopped_and_goes_on_is_not_blamed_for_where_it_stood() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    world.state[1] = "T"
    stood = {1: (SPIN, USER)}
    world.wait(6, stacks=stood)
    assert world.rules == ["HANG001"]
    world.state[1] = "S"
    world.wait(1, stacks=stood)
    assert world.rules == ["HANG001"]
    world.wait(6, stacks=stood)
    assert world.rules == ["HANG001", "HANG002"], "it was not because it was stopped"


def test_a_job_that_is_being_ended_is_blamed_for_no_stall() -> None:
    world = World(stop_on_hang=True)
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    world.state[1] = "T"
    world.wait(6, stacks={1: (SPIN, USER)})
    assert world.end is not None
    world.state[1] = "S"
    world.wait(20, stacks={1: (SPIN, USER)})
    assert world.rules == ["HANG001"]


def test_a_spinning_rank_is_named_and_the_waiting_ones_are_not() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    world.wait(5, stacks={1: (SPIN, USER)})
    assert world.rules == ["HANG002"]
    (finding,) = world.job.status.findings
    assert [w.rank for w in finding.who] == [1]
    assert finding.seconds_to_find is not None and finding.seconds_to_find <= 5


def test_a_loop_that_asks_the_disk_is_one_place() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    world.state[1] = "R"
    asks = Frame("<frozen genericpath>", 19, "exists")
    for n in range(80):
        world.cpu[1] += 0.25 * 0.27  # what is left of a core on a full machine
        world.wait(0.25, stacks={1: (SPIN, USER) if n % 2 else (asks, SPIN, USER)})
    (finding,) = world.job.status.findings
    assert finding.rule == "HANG002" and "stays at train.py:33" in finding.summary


def in_a_library(seconds: float, lines: int = 9, functions: int = 1) -> list[str]:
    """What is told of a rank that computes for so long in a call of a library, now at one line, now at
    another, of one function or of several."""
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    for n in range(int(seconds / 0.25)):
        world.cpu[1] += 0.25
        inner = Frame("/usr/lib/python3.11/difflib.py", n % lines, f"find_{n % functions}")
        world.wait(0.25, stacks={1: (inner, USER)})
    return world.rules


def test_a_call_of_a_library_that_does_not_end_is_told_after_a_minute() -> None:
    assert in_a_library(50.0) == []
    assert in_a_library(90.0) == ["HANG025"]
    assert in_a_library(90.0, functions=7) == [], "which goes on with something else"


def test_moving_stacks_are_no_finding() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    for n in range(80):
        here = Frame("/home/u/evaluate.py", n, f"metric_{n % 7}", "x = f(x)")
        world.wait(0.25, stacks={1: (here, USER)})
    assert world.rules == []


def test_a_likely_hang_ends_the_job_only_after_hang_after() -> None:
    world = World(stop_on_hang=True, hang_after=20.0)
    world.train(0, 1, 2, step=10)
    world.tell()
    world.train(0, 2, step=10, ops=11, op=Op("all_reduce", 11, world.clock.now))
    world.wait(15, stacks={1: (SPIN, USER)})
    assert world.rules == ["HANG002"] and world.end is None
    world.wait(10, stacks={1: (SPIN, USER)})
    assert world.end is not None and world.end.outcome is Outcome.HANG


def test_the_first_to_fail_is_blamed_and_the_others_get_time_to_fall() -> None:
    world = World()
    world.tell(GateOpened(opened_at=world.clock.now))
    world.train(0, 1, 2, step=10)
    world.tell()
    world.gone.add(1)
    world.tell(ProcessExited(pid=101, exited_at=world.clock.now, signal=9))
    assert world.rules == [], "others may fall because of it, and are told with it"
    world.wait(1.25)
    assert world.rules == ["EXIT001"] and world.end is None
    lost = Raised(
        type="RuntimeError", message="Connection closed by peer", raised_at=world.clock.now + 0.3
    )
    world.train(0, step=10, raised=lost)
    world.tell()
    world.gone.add(0)
    world.tell(ProcessExited(pid=100, exited_at=world.clock.now + 0.5, code=1))
    world.wait(6)
    assert world.rules == ["EXIT001"]
    assert world.end is not None and world.end.outcome is Outcome.FAILED


def test_an_agent_that_was_not_scheduled_starts_its_windows_again() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.clock.advance(120)
    assert world.tell(AgentOverslept(seconds=120)) == []
    assert world.rules == []


def test_an_interrupt_is_no_finding() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell(AgentInterrupted(signal=2, interrupted_at=world.clock.now))
    world.gone |= {0, 1, 2}
    world.tell(*(ProcessExited(pid=100 + w, exited_at=world.clock.now, signal=2) for w in range(3)))
    assert world.rules == []
    assert world.job.status.outcome[0] is Outcome.INTERRUPTED


def test_a_job_that_is_interrupted_while_it_stands_still_names_who_holds_it_up() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    receives = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
    asks = Frame("/usr/lib/python3.11/http/client.py", 292, "_read_status")
    world.wait(40, {1: (receives, asks, USER)})
    assert world.rules == [], "it may go on"
    world.tell(AgentInterrupted(signal=2, interrupted_at=world.clock.now))
    assert world.rules == ["HANG027"]
    (finding,) = world.job.status.findings
    assert [w.rank for w in finding.who] == [1]
    assert world.job.status.outcome[0] is Outcome.INTERRUPTED


def test_what_is_known_of_a_stall_is_not_repeated_when_the_job_is_interrupted() -> None:
    world = World()
    world.train(0, 1, 2, step=10)
    world.tell()
    world.wait(25, {1: (SPIN,)})
    known_rules = list(world.rules)
    assert known_rules
    # At a place where it may pause, so that the rule which named it makes no claim any more.
    receives = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
    asks = Frame("/usr/lib/python3.11/http/client.py", 292, "_read_status")
    world.wait(6, {1: (receives, asks, USER)})
    world.tell(AgentInterrupted(signal=2, interrupted_at=world.clock.now))
    assert world.rules == known_rules
