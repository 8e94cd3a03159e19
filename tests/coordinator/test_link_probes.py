"""Links of thousands of hosts: what is kept of those that work, and that none that fails is lost in it."""

from __future__ import annotations

from allaboard.analysis.network.link_faults import NO_CONNECTION_ANSWERS, find_link_faults
from allaboard.analysis.roll_call.link_probe_schedule import probe_targets
from allaboard.cluster.transport.link_trial import LINK_FIGURES
from allaboard.coordinator.trackers.link_probes import MAX_LISTED_LINKS, LinkProbes
from allaboard.facts import Answer, Link
from allaboard.protocol.events import LinksProbed

HOSTS = 600
GOOD, SLOW, NONE = (0.0001, 1e9), (0.0001, 5e5), (0.0, 0.0)


def tried(odd: dict[tuple[int, int], tuple[float, float]]) -> LinkProbes:
    """All have tried each other, each link with these figures where they are not the usual ones."""
    trials = LinkProbes()
    for one in range(HOSTS):
        wanted = probe_targets(one, HOSTS)
        trials.request_probes(one, tuple((f"h{i}", f"10.0.0.1:{i}") for i in wanted))
        figures = [odd.get((one, i), GOOD) for i in wanted]
        failed = [
            Link(source=f"h{one}", target=f"h{i}", address=f"10.0.0.1:{i}", answer=Answer.SILENT)
            for i, figure in zip(wanted, figures, strict=True)
            if figure == NONE
        ]
        worked = b"".join(LINK_FIGURES.pack(*f) for f in figures)
        trials.add_results(LinksProbed(agent=one, worked=worked), f"h{one}", failed)
    return trials


COUNT = sum(len(probe_targets(i, HOSTS)) for i in range(HOSTS))


def test_those_that_work_are_counted() -> None:
    trials = tried({})
    assert COUNT > MAX_LISTED_LINKS
    assert trials.links == ()
    assert trials.usual_link is not None and trials.usual_link.count == COUNT
    assert abs(trials.usual_link.rate - 1e9) < 1e3 and abs(trials.usual_link.seconds - 1e-4) < 1e-8


def test_a_slow_one_is_told() -> None:
    trials = tried({(7, 11): SLOW})
    assert trials.usual_link is None and len(trials.links) == COUNT, "it is judged among all"
    (slow,) = [k for k in trials.links if k.rate < 1e6]
    assert (slow.source, slow.target, slow.rate, slow.works) == ("h7", "h11", 5e5, True)


def test_a_host_that_nobody_reaches_is_told_from_a_link_that_fails() -> None:
    to_nine = {(i, 9): NONE for i in range(HOSTS) if 9 in probe_targets(i, HOSTS)}
    trials = tried(to_nine | {(100, 101): NONE})
    assert trials.usual_link is None and len(trials.links) == COUNT
    host, pair = find_link_faults(trials.links, NO_CONNECTION_ANSWERS)
    assert (host.host, pair.pair) == ("h9", ("h100", "h101"))
    assert len(host.links) == len(to_nine)


def test_figures_that_fit_no_question_are_left_out() -> None:
    trials = LinkProbes()
    trials.request_probes(1, (("h2", "10.0.0.2:1"),))
    trials.add_results(LinksProbed(agent=1, worked=b"1234567"), "h1", [])
    trials.add_results(LinksProbed(agent=2, worked=LINK_FIGURES.pack(*GOOD)), "h2", [])
    assert trials.links == () and trials.usual_link is None
