"""The losses of a training in equal parts: what counts as moved, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from allaboard.coordinator.trackers.loss_course import LossBlocks
from allaboard.facts import JobView, LossCourse
from allaboard.facts.samples import sample_job, sample_member
from allaboard.rules.num008_flat_loss import check


def course_of(
    loss: Callable[[int], float], samples: int = 600, every: int = 5, seed: int = 1
) -> LossCourse:
    """Sample this course four times a second; ``loss`` is the expected one after so many steps."""
    blocks = LossBlocks()
    for n in range(samples):
        blocks.add_loss(n / 4, 1 + n * every, loss(1 + n * every))
    course = blocks.course
    assert course is not None
    return course


def noise(share: float, seed: int = 1) -> Callable[[float], float]:
    random = Random(seed)
    return lambda mean: mean * (1 + random.gauss(0.0, share))


def job(course: LossCourse) -> JobView:
    return sample_job(*(sample_member(r, loss_course=course) for r in range(2)))


def test_the_means_of_equal_parts() -> None:
    course = course_of(lambda step: 5.0 - step / 1000, samples=160, every=10)
    assert (course.samples, course.first_step, course.last_step, course.span) == (
        160,
        1,
        1591,
        39.75,
    )
    assert abs(course.highest_mean - 4.924) < 1e-9 and abs(course.lowest_mean - 3.484) < 1e-9
    assert abs(course.first_mean - 4.964) < 1e-9 and course.lowest == 5.0 - 1.591


def test_a_loss_that_only_scatters_is_flat() -> None:
    for seed in range(20):
        scatter = noise(0.01, seed)
        (claim,) = check(job(course_of(lambda _: scatter(2.3))))  # noqa: B023
        assert claim.summary == "the loss has stayed at 2.3 since the first steps, for 2995 steps"


def test_a_healthy_course_is_not_flat() -> None:
    """A slow fall, much noise, a warm-up, a fall at the beginning alone: among many seeds none."""
    courses: dict[str, Callable[[int], float]] = {
        "slow": lambda step: 2.3 * (1 - 0.02 * step / 3000),
        "power law": lambda step: 2.3 * step**-0.02,
        "falls at first": lambda step: 2.3 + 8.0 * 0.9**step,
        "warm-up": lambda step: 2.3 - 0.3 * max(0.0, step / 3000 - 0.5) ** 2,
        "U-shaped": lambda step: 2.3 * (1 + 0.05 * (step / 1500 - 1) ** 2),
    }
    for name, loss in courses.items():
        for seed in range(20):
            scatter = noise(0.01, seed)
            claims = list(check(job(course_of(lambda step: scatter(loss(step))))))  # noqa: B023
            assert claims == [], (name, seed)
    long_ago = course_of(lambda step: 2.3 + 8.0 * 0.9**step, samples=200_000)
    assert not list(check(job(long_ago)))
    for seed in range(50):
        scatter = noise(0.2, seed)
        assert not list(check(job(course_of(lambda _: scatter(2.3)))))  # noqa: B023


def test_a_value_that_was_seen_once_is_no_course() -> None:
    blocks = LossBlocks()
    for n in range(5000):
        blocks.add_loss(float(n), n, 2.3)
    assert blocks.course is None
