"""Which steps of a serving benchmark are worth profiling, from its parameters alone.

CONC requests run at once, NUM_PROMPTS in all; each yields R·OSL to OSL tokens, uniformly drawn, one
a step. All arithmetic is exact, so that 921.6 stays 921.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tracehouse.errors import UsageError

PROMPTS_PER_SLOT = 10  # NUM_PROMPTS of a benchmark is typically 10·CONC
GROUP = 5  # the group of requests around whose end the batch is full and well mixed
WANTED_PREFILLS = 16  # steps with a prefill that a window is to hold
FEWEST_ITERS, MOST_ITERS = 32, 1024
LARGEST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A serving benchmark: `conc` requests at once, `num_prompts` in all, R·OSL to OSL tokens each.

    `is_r_clamped` says that the R asked for lay outside [0, 1].
    """

    conc: int
    osl: int
    r: Fraction
    num_prompts: int
    is_r_clamped: bool = False

    @property
    def avg_osl(self) -> Fraction:
        """Tokens that a request yields on average: OSL·(1+R)/2."""
        return self.osl * (1 + self.r) / 2

    @property
    def total_steps(self) -> Fraction:
        """Steps of the whole run: NUM_PROMPTS·avg/CONC."""
        return self.num_prompts * self.avg_osl / self.conc

    @property
    def ratio_raw(self) -> Fraction:
        """Prefills a step: 2·CONC/(OSL·(1+R)), above 1 where CONC exceeds the average output."""
        return self.conc / self.avg_osl

    @property
    def ratio(self) -> Fraction:
        """Share of steps that carry a prefill, at most 1."""
        return min(self.ratio_raw, Fraction(1))

    @property
    def decode_only_steps_raw(self) -> Fraction:
        """NUM_PROMPTS·(avg−CONC)/CONC: negative where every step carries prefills."""
        return self.num_prompts * (self.avg_osl - self.conc) / self.conc

    @property
    def decode_only_steps(self) -> Fraction:
        """Steps without a prefill, at least 0."""
        return max(self.decode_only_steps_raw, Fraction(0))

    @property
    def prefill_decode_steps(self) -> Fraction:
        """Steps with a prefill: one a prompt, at most every step."""
        return min(Fraction(self.num_prompts), self.total_steps)

    @property
    def min_window_steps(self) -> int:
        """Steps of the shortest window that holds a prefill on average: ceil(1/ratio)."""
        return math.ceil(1 / self.ratio)

    @property
    def groups(self) -> int:
        """Full groups of CONC requests: NUM_PROMPTS/CONC, rounded down."""
        return self.num_prompts // self.conc

    @property
    def group(self) -> int:
        """Number of the group whose end to profile: the fifth, or the middle one of fewer."""
        return GROUP if self.groups >= GROUP else max(1, math.ceil(self.groups / 2))

    def completion_range(self, group: int) -> tuple[Fraction, Fraction]:
        """Return the steps between which requests of group 1, 2, … end: N·R·OSL to N·OSL."""
        return group * self.r * self.osl, Fraction(group * self.osl)


@dataclass(frozen=True, slots=True)
class Window:
    """The steps to profile: `max_iters` steps after the first `delay_iters`.

    The raw values are the bare formulas'. `max_reason` and `delay_reason` say why a value is
    another than its raw one, and are empty where it is not.
    """

    max_iters_raw: Fraction
    max_iters: int
    max_reason: str
    delay_iters_raw: Fraction
    delay_iters: int
    delay_reason: str


def workload(conc: int, osl: int, r: float | Fraction, num_prompts: int | None = None) -> Workload:
    """Return the benchmark of these parameters; NUM_PROMPTS is 10·CONC by default.

    An R outside [0, 1] becomes the nearer of the two.

    Raises:
        UsageError: CONC or OSL below 1 or beyond a thousand million, NUM_PROMPTS below 1 or
            beyond ten times that, or an R that is no number.
    """
    prompts = PROMPTS_PER_SLOT * conc if num_prompts is None else num_prompts
    for name, value, largest in (
        ("CONC", conc, LARGEST),
        ("OSL", osl, LARGEST),
        ("NUM_PROMPTS", prompts, PROMPTS_PER_SLOT * LARGEST),
    ):
        if not 1 <= value <= largest:
            raise UsageError(f"{name} must be from 1 to {largest:,}, not {value}")
    try:
        given = Fraction(str(r))
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"R must be a number from 0 to 1, not {r}") from None
    inside = min(max(given, Fraction(0)), Fraction(1))
    return Workload(conc, osl, inside, prompts, is_r_clamped=inside != given)


def window_of(load: Workload) -> Window:
    """Return the steps to profile.

    max_iters is 16·OSL/CONC, rounded, from 32 to 1024 and at most the run's steps. delay_iters lets
    the window lie around the likeliest end of the group, group·avg, but not within the ramp-up (the
    first CONC steps) nor beyond the end of the run.
    """
    total = math.floor(load.total_steps)
    max_raw = Fraction(WANTED_PREFILLS * load.osl, load.conc)
    max_iters, max_reason = _clamped_iters(round(max_raw), total)
    if max_iters == round(max_raw):
        max_reason = ""
    center = load.group * load.avg_osl
    delay_raw = center - max_raw / 2
    delay_iters, delay_reason = _clamped_delay(
        _half_up(center - Fraction(max_iters, 2)), load.conc, total - max_iters
    )
    if delay_iters == _half_up(delay_raw):
        delay_reason = ""
    elif not delay_reason:
        delay_reason = "half of the clamped max_iters before the likeliest completion"
    return Window(max_raw, max_iters, max_reason, delay_raw, delay_iters, delay_reason)


def raised_steps(num_steps: int, load: Workload) -> int:
    """Return `num_steps`, raised where so few steps could miss every prefill."""
    return max(num_steps, load.min_window_steps)


def _clamped_iters(wanted: int, total: int) -> tuple[int, str]:
    clamped, reason = wanted, ""
    if wanted < FEWEST_ITERS:
        clamped, reason = FEWEST_ITERS, f"at least {FEWEST_ITERS:,} steps"
    elif wanted > MOST_ITERS:
        clamped, reason = MOST_ITERS, f"at most {MOST_ITERS:,} steps: a trace must stay readable"
    if clamped > total:
        clamped, reason = max(1, total), f"the whole run has {total:,} steps"
    return clamped, reason


def _clamped_delay(wanted: int, ramp_up: int, latest: int) -> tuple[int, str]:
    if wanted > latest >= ramp_up:
        return latest, "the window must end with the run"
    if wanted < ramp_up or latest < wanted:
        return ramp_up, f"the first CONC = {ramp_up:,} steps are the ramp-up"
    return wanted, ""


def _half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))
