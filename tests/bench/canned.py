"""Results as the bench might find them, small and made up: every target is reached unless a test changes one."""

from bench.contests import plans
from bench.peers import FRAMERS
from bench.results import Contest, Entry, Fact, Machine, Peak, Results, Shape, Span, Whole
from bench.scale import QUICK

FIVE = Span(median=5.0, low=4.5, high=5.5)
TWO = Span(median=2.0, low=1.9, high=2.1)


def contests(part: str) -> tuple[Contest, ...]:
    """Make every contest of a part: each contestant five times as fast as the baseline, itself included."""
    return tuple(
        Contest(
            part=plan.part,
            variant=plan.variant,
            pieces=plan.cut,
            baseline=plan.baseline,
            entries=tuple(
                Entry(name=name, ns=1000, mb_per_s=230, ratio=FIVE, instructions=4000, is_floor=name in plan.floors)
                for name in [*plan.names, *plan.floors]
            ),
        )
        for plan in plans(part)
    )


MACHINE = Machine(
    date="2026-11-30",
    processor="A Processor",
    cores=2,
    system="Linux x86_64",
    python="CPython 3.11.7",
    versions={"httpx-sse": "0.4.3"},
)
STEEP = Peak(framer="anthropic", megabytes=1, seconds=4, growth=4)
REFUSED = Peak(framer="openai", megabytes=None, seconds=None, growth=None, note="ValueError at 1 MB")
SHAPE = Shape(title="one line, 16 B", seconds={1: 0.1, 2: 0.2}, growth=TWO, ratio=FIVE, peaks=(STEEP, REFUSED))
FACT = Fact(name="CR alone ends a line", answers={name: "gives []" * (name == "openai") for name in FRAMERS})
RESULTS = Results(
    machine=MACHINE,
    scale=QUICK,
    counted="valgrind 3.19.0",
    contests=contests("framers") + contests("readers"),
    whole=Whole(streams=1000, events=300_000, megabytes=69, seconds=0.3),
    shapes=(SHAPE,),
    facts=(FACT,),
    run=TWO,
)
