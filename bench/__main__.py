"""`python -m bench`: everything that `aof admin bench` measures, and others beside it. See README.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from aof.bench import report, suite
from bench import backlog, board, others, portable, siege, tools


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    options = _options(arguments)
    plan = _plan(options)
    with suite.scratch(options.dir) as folder:
        run = suite.measure(
            plan, folder, say=_say, others=others.installed(), compared=others.compared, parser=others.yaml_parser()
        )
        run.machine["compared with"] = ", ".join(others.versions())
        run.parts.extend(backlog.measure(folder / "backlog", rounds=plan.calls, few=options.quick, say=_say))
        run.parts.append(tools.measured(folder, rounds=plan.rounds, seconds=plan.seconds, say=_say))
        amount = portable.Amount.quick() if options.quick else portable.Amount()
        run.parts.append(portable.measured(folder, amount=amount, say=_say))
        page = board.Amount.quick() if options.quick else board.Amount()
        run.parts.append(board.measured(folder, amount=page, say=_say, browser=not options.quick))
        attack = siege.Attack.quick() if options.quick else siege.Attack()
        run.parts.append(siege.measured(folder, rounds=1 if options.quick else 3, attack=attack, say=_say))
        _say("")
        print(report.render_table(run.machine, run.parts), flush=True)
        if options.json:
            Path(options.json).write_text(f"{json.dumps(run.as_json(), indent=2)}\n", encoding="utf-8")
        _say("removing what was written")  # which may take as long as the writing
    _say("")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure AOF beside the disk, others and size."
    )
    parser.add_argument("--dir", help="measure below this folder, on its disk")
    parser.add_argument("--json", metavar="FILE", help="write every figure there as well")
    parser.add_argument("--quick", action="store_true", help="takes a few seconds; its figures are too rough to quote")
    parser.add_argument("--rounds", type=int, help="how often each subject has its turn")
    parser.add_argument("--seconds", type=float, help="how long each turn lasts")
    parser.add_argument("--sizes", type=_sizes, help="such as 1000,10000; 0 for none")
    return parser.parse_args(arguments)


def _plan(options: argparse.Namespace) -> suite.BenchPlan:
    plan = suite.BenchPlan.quick() if options.quick else suite.BenchPlan()
    given = {name: getattr(options, name) for name in ("rounds", "seconds", "sizes")}
    return plan._replace(**{name: value for name, value in given.items() if value is not None})


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if int(part))


def _say(what: str) -> None:
    """What goes on, in one line, for whoever watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
