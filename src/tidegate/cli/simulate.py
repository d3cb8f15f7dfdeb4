"""`tidegate simulate`: brokers and clients in a simulated world, or a check of the routing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

from tidegate.cli.files.input_file import InputFile
from tidegate.cli.progress import ProgressBars
from tidegate.cli.topology import check_picture
from tidegate.errors import BadValueError, SimulationError, TidegateError
from tidegate.language.durations import parse_duration
from tidegate.language.spaces import Space
from tidegate.matching.space_file import read_spaces
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.routing.strategies import STRATEGIES
from tidegate.routing.substrates import SUBSTRATES
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.counting import counted
from tidegate.simulation.drawing.loads import loads_from_json
from tidegate.simulation.faults import parse_crash, parse_cut, parse_partition
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.json_file import read_overlay
from tidegate.simulation.overlays.reshaping import with_bandwidth
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.replay import TraceDifference, replay
from tidegate.simulation.report import Report
from tidegate.simulation.scenario import (
    PROGRESS_STEPS,
    ROUTINGS,
    SEMANTICS,
    SUMMARIES,
    Scenario,
    Simulation,
    SlowSubscribers,
    strategy_name,
)
from tidegate.simulation.script import Script, read_script
from tidegate.simulation.trace import Trace
from tidegate.simulation.verifying.verification import (
    VERIFIED_TOPOLOGIES,
    VerificationCase,
    cases,
    outcomes,
)
from tidegate.simulation.workloads import WORKLOADS, Demand
from tidegate.simulation.world import Weather

Options = dict[str, Any]
"""The options that were given, by their names as Python has them."""

# Options are None unless given, and their defaults are in `Scenario` and `Demand`. So an option
# that does not go with the chosen mode (a run, --replay, --verify) can be refused.
RUN_ONLY = (
    "workload", "publishers", "subscribers", "rate", "duration", "processor_us", "merging",
    "substrate", "slow", "crash", "cut", "trace", "loads", "picture", "semantics", "bandwidth",
    "jitter", "duplicates", "partition", "script", "space", "summary_period", "summary_batch",
    "degree_max", "to_hubs", "no_subsumption", "summary_rows",
)  # fmt: skip
WORKLOAD_ONLY = ("workload", "publishers", "subscribers", "rate", "duration", "slow")
SUMMARIES_ONLY = (
    "summary_period", "summary_batch", "degree_max", "to_hubs", "no_subsumption", "summary_rows",
)  # fmt: skip
VERIFY_ONLY = ("seeds", "runs", "jobs")
PROBLEMS_SHOWN = 5
"""Number of problems of a failing run that are printed."""


def _describe_workloads() -> str:
    lines = [f"  {name:<10} {workload.summary}" for name, workload in WORKLOADS.items()]
    return "\b\nWorkloads:\n" + "\n".join(lines)


class _Seeds(click.ParamType[range]):
    """The option FROM-TO: a range of seeds, both ends included."""

    name = "FROM-TO"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        first, sign, last = str(value).partition("-")
        if not (sign and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            self.fail(f"{value!r} is no range of seeds; write it like 0-99", param, ctx)
        return range(int(first), int(last) + 1)


class _DurationUs(click.ParamType[int]):
    """A duration such as 20ms, in microseconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return round(parse_duration(str(value)).total_seconds() * 1e6)
        except BadValueError as error:
            self.fail(str(error), param, ctx)


class _Slow(click.ParamType[SlowSubscribers]):
    """The option N@DURATION: the number of slow subscribers, and their time for each delivery."""

    name = "N@DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> SlowSubscribers:
        count, sign, duration = str(value).partition("@")
        if not (sign and count.isdecimal()):
            self.fail(f"{value!r} is no number with a duration; write it like 3@20ms", param, ctx)
        return SlowSubscribers(int(count), _DurationUs().convert(duration, param, ctx))


@click.command(epilog=_describe_workloads())
@click.option("--topology", metavar="NAME", help="A generated overlay; see tidegate topology.")
@click.option("--overlay", metavar="FILE", help="An overlay of your own, as JSON.")
@click.option("--brokers", type=int, metavar="N", help="Number of brokers to generate.")
@click.option(
    "--routing", type=click.Choice(ROUTINGS), help="Routing strategy.  [default: subscription]"
)
@click.option(
    "--workload", type=click.Choice(list(WORKLOADS)), help="Workload; see below.  [default: zipf]"
)
@click.option("--script", metavar="FILE",
              help="Actions of clients as JSON lines, instead of a workload.")  # fmt: skip
@click.option("--space", multiple=True, metavar="FILE",
              help="With --script: a space that requests may name; may be repeated.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), metavar="N",
              help="Seed of the overlay and of the run.  [default: 0]")  # fmt: skip
@click.option("--publishers", type=int, metavar="N", help="Number of publishers.  [default: 10]")
@click.option("--subscribers", type=int, metavar="N", help="Number of subscribers.  [default: 100]")
@click.option("--rate", type=float, metavar="N",
              help="Events per second of all publishers together.  [default: 100]")  # fmt: skip
@click.option(
    "--duration",
    type=_DurationUs(),
    help="Simulated time in which events are published.  [default: 10s]",
)
@click.option("--processor-us", type=click.IntRange(min=0), metavar="N",
              help="Processing time of a message, in microseconds.  [default: 0]")  # fmt: skip
@click.option("--semantics", type=click.Choice(SEMANTICS),
              help="Deliver all events that match a subscription, or only those that were also "
                   "advertised.  [default: by routing]")  # fmt: skip
@click.option("--bandwidth", type=click.FloatRange(min=0, min_open=True), metavar="N",
              help="Bytes per second of links whose overlay does not set it.  "
                   "[default: unlimited]")  # fmt: skip
@click.option("--jitter", type=_DurationUs(),
              help="Largest random delay of a message, added to that of its link.")  # fmt: skip
@click.option("--duplicates", type=click.FloatRange(0, 1), metavar="N",
              help="Share of messages that a link delivers twice.")  # fmt: skip
@click.option("--merging", is_flag=True, help="Merge filters that are sent, where that is exact.")
@click.option(
    "--substrate",
    type=click.Choice(SUBSTRATES),
    help="Matcher of the brokers.  [default: by routing]",
)
@click.option("--summary-period", type=_DurationUs(),
              help="With --routing summaries: how long changes wait.  [default: 1s]")  # fmt: skip
@click.option("--summary-batch", type=click.IntRange(min=1), metavar="N",
              help="With --routing summaries: so many changes do not wait.  "
                   "[default: 1000]")  # fmt: skip
@click.option("--degree-max", type=click.IntRange(min=1), metavar="N",
              help="With --routing summaries: the degree of a broker counts at most so much.  "
                   "[default: no limit]")  # fmt: skip
@click.option(
    "--to-hubs",
    is_flag=True,
    help="With --routing summaries: summaries go to the neighbour of the highest degree, "
    "and on with all that came before. Fewer brokers examine an event.",
)
@click.option("--no-subsumption", is_flag=True,
              help="With --routing summaries: summarize covered subscriptions too.")  # fmt: skip
@click.option("--summary-rows", type=click.IntRange(min=1), metavar="N",
              help="With --routing summaries: so many rows for an attribute. Fewer make "
                   "summaries smaller; more events come in vain.  [default: 65536]")  # fmt: skip
@click.option("--slow", type=_Slow(), help="Slow subscribers, and their time for each delivery.")
@click.option("--crash", multiple=True, metavar="B@FROM..TO",
              help="A broker that is down, as in b3@2s..4s; may be repeated.")  # fmt: skip
@click.option("--cut", multiple=True, metavar="A-B@FROM..TO",
              help="A link that is down; may be repeated.")  # fmt: skip
@click.option("--partition", multiple=True, metavar="B,B..@FROM..TO",
              help="Brokers or regions that are cut off; may be repeated.")  # fmt: skip
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write every message as a line of JSON.")  # fmt: skip
@click.option(
    "--replay", metavar="FILE", help="Repeat the run of a trace, and compare the messages."
)
@click.option("--loads", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the loads of links and brokers, for tidegate topology.")  # fmt: skip
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the overlay with its loads; the name ends in .svg or .png.")  # fmt: skip
@click.option("--verify", is_flag=True, help="Compare random runs with the expected deliveries.")
@click.option("--seeds", type=_Seeds(), help="With --verify: the seeds of the runs.")
@click.option("--runs", type=click.IntRange(min=1), metavar="N",
              help="With --verify: the number of runs, with seeds from --seed on.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=0), metavar="N",
              help="With --verify: processes; 0 for one on each core.  [default: 1]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def simulate(as_json: bool, **options: Any) -> None:
    """Run brokers and clients in a simulated world; the same seed gives the same run.

    With --verify, clients act at random while brokers and links fail, and all deliveries are
    compared with the expected ones; without --topology and --routing on all architectures with all
    routings. A failing run is printed with the command that reproduces it; the exit code is then 1.

    \b
    Examples:
      tidegate simulate --topology gryphon --workload regional --routing subscription
      tidegate simulate --topology random-tree --crash b3@2s..4s --slow 3@20ms --loads loads.json
      tidegate simulate --topology isp24 --partition west@2s..5s --jitter 30ms --bandwidth 50000
      tidegate simulate --topology chain --script examples/overlay/script.jsonl
      tidegate simulate --topology chain --space examples/market/space.json \\
          --script examples/overlay/trades.jsonl
      tidegate simulate --topology chain --trace trace.jsonl
      tidegate simulate --replay trace.jsonl
      tidegate simulate --verify --routing advertisement --runs 1000 --jobs 0
    """
    given = {
        name: value
        for name, value in options.items()
        if value is not None and value is not False and value != ()
    }
    if "replay" in given:
        _refuse(given, set(given) - {"replay"}, "--replay takes all settings from the trace")
        _replay(given["replay"], as_json)
    elif "verify" in given:
        _refuse(given, RUN_ONLY, "--verify has a workload of its own")
        _verify(given, as_json)
    else:
        _refuse(given, VERIFY_ONLY, "needs --verify")
        _run(given, as_json)


def _refuse(given: Options, names: Collection[str], reason: str) -> None:
    """Raise a UsageError if one of the named options was given."""
    for name in given:
        if name in names:
            raise click.UsageError(f"--{name.replace('_', '-')}: {reason}")


def _topology(given: Options) -> Topology:
    if ("topology" in given) == ("overlay" in given):
        raise click.UsageError("give one of --topology and --overlay")
    if "overlay" in given:
        if "brokers" in given:
            raise click.UsageError("--brokers is for --topology; an overlay file has its brokers")
        return read_overlay(given["overlay"])
    return generate(given["topology"], given.get("brokers"), given.get("seed", 0))


# -- a run --------------------------------------------------------------------------------------


def _run(given: Options, as_json: bool) -> None:
    if "picture" in given:
        check_picture(given["picture"], "--picture")
    scenario = _scenario(given)
    with _output_file(given.get("trace")) as file:
        trace = None if file is None else Trace(file.write)
        simulation = Simulation(scenario, trace)
        if trace is not None:
            trace.begin(simulation.world, _trace_header(scenario))
        with ProgressBars(wanted=True).steps("simulating", PROGRESS_STEPS) as advance:
            report = simulation.run(advance)
    _write_loads(report, given, scenario.topology)
    click.echo(report.to_json() if as_json else "\n".join(report.lines()))


def _scenario(given: Options) -> Scenario:
    topology = _topology(given)
    if "bandwidth" in given:
        topology = with_bandwidth(topology, given["bandwidth"])
    script, demand = None, _demand(given)
    spaces = read_spaces(given.get("space", ()))
    if "script" not in given:
        _refuse(given, ["space"], "goes with --script; a workload has attributes of its own")
    else:
        _refuse(given, WORKLOAD_ONLY, "--script defines the actions of clients")
        script = _script(given["script"], topology, spaces)
        demand = Demand(0, 0, 0.0, script.duration_s)
    faults = [parse_crash(text, topology) for text in given.get("crash", ())]
    faults += [parse_cut(text, topology) for text in given.get("cut", ())]
    for text in given.get("partition", ()):
        faults += parse_partition(text, topology)
    weather = Weather(given.get("jitter", 0), given.get("duplicates", 0.0))
    passed_on = (
        "routing", "workload", "seed", "processor_us", "merging", "semantics", "substrate", "slow",
    )  # fmt: skip
    fields = {name: given[name] for name in passed_on if name in given}
    return Scenario(
        topology, demand=demand, weather=weather, faults=tuple(faults), script=script,
        spaces=spaces, summaries=_summary_settings(given), **fields,
    )  # fmt: skip


def _summary_settings(given: Options) -> SummarySettings | None:
    if given.get("routing") != SUMMARIES:
        _refuse(given, SUMMARIES_ONLY, f"goes with --routing {SUMMARIES}")
        return None
    names = {"summary_period": "period_us", "summary_batch": "batch_max",
             "degree_max": "degree_max"}  # fmt: skip
    fields = {field: given[name] for name, field in names.items() if name in given}
    if "summary_rows" in given:
        fields["budget"] = SummaryBudget(rows_max=given["summary_rows"])
    return SummarySettings(
        to_hubs="to_hubs" in given, subsumption="no_subsumption" not in given, **fields
    )


def _demand(given: Options) -> Demand:
    fields = {
        "publishers": given.get("publishers"),
        "subscribers": given.get("subscribers"),
        "rate_per_s": given.get("rate"),
        "duration_s": given["duration"] / 1e6 if "duration" in given else None,
    }
    return Demand(**{name: value for name, value in fields.items() if value is not None})


def _script(name: str, topology: Topology, spaces: Sequence[Space]) -> Script:
    try:
        return read_script(InputFile(name).lines(lambda _: None), topology, spaces)
    except SimulationError as error:
        raise SimulationError(f"{name}: {error}") from None


def _trace_header(scenario: Scenario) -> Options:
    """The settings of a scenario that the header of a trace has for its readers."""
    return {"workload": scenario.workload, "demand": asdict(scenario.demand)}


@contextmanager
def _output_file(path: Path | None) -> Iterator[IO[str] | None]:
    """A text file to write, or None without a path; raises TidegateError if it cannot be written.

    It is not written atomically, unlike the matches of `tidegate match`: the messages before a
    crash are what a trace is for.
    """
    if path is None:
        yield None
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise TidegateError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_loads(report: Report, given: Options, topology: Topology) -> None:
    with _output_file(given.get("loads")) as file:
        if file is not None:
            file.write(report.loads_json())
    if "picture" in given:
        from tidegate.simulation.drawing.picture import draw_overlay  # Matplotlib, an extra

        draw_overlay(topology, given["picture"], loads_from_json(report.loads_json(), topology))
        click.echo(f"drew {given['picture']}", err=True)


# -- replay -------------------------------------------------------------------------------------


def _replay(name: str, as_json: bool) -> None:
    try:
        with open(name, encoding="utf-8") as file:
            replayed = replay(file)
    except OSError as error:
        raise SimulationError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SimulationError(f"{name}: this is not UTF-8") from None
    except SimulationError as error:
        raise SimulationError(f"{name}: {error}") from None
    if as_json:
        click.echo(json.dumps(asdict(replayed)))
    else:
        verb = "is" if replayed.messages == 1 else "are"
        click.echo(f"{counted(replayed.messages, 'message')} {verb} the same, byte for byte")
        if replayed.difference is not None:
            click.echo("\n".join(_difference_lines(name, replayed.difference)))
    if replayed.difference is not None:
        sys.exit(1)


def _difference_lines(name: str, difference: TraceDifference) -> Iterator[str]:
    yield f"{name}, line {difference.line}: the message differs:"
    yield f"  traced  {(difference.traced or 'nothing more').rstrip()}"
    yield f"  now     {(difference.now or 'nothing more').rstrip()}"


# -- verification -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Verdict:
    """The result of a verification, as it is printed with --json."""

    runs: int = 0
    failed: int = 0


def _verify(given: Options, as_json: bool) -> None:
    runs, count = _cases(given)
    verdict = _Verdict()
    print_problems: Callable[[VerificationCase, list[str]], None] = (
        _print_problems_as_json if as_json else _print_problems
    )
    jobs = given.get("jobs", 1) or os.cpu_count() or 1
    with ProgressBars(wanted=True).steps("verifying", count) as advance:
        for case, problems in outcomes(runs, jobs):
            verdict.runs += 1
            if problems:
                verdict.failed += 1
                print_problems(case, problems)
            advance(1)
    if as_json:
        click.echo(json.dumps(asdict(verdict)))
    else:
        click.echo(f"{counted(verdict.runs, 'run')}, {verdict.failed:,} with problems")
    if verdict.failed:
        sys.exit(1)


def _cases(given: Options) -> tuple[Iterator[VerificationCase], int]:
    """The cases that the options select, and their number."""
    if sum(name in given for name in ("seeds", "runs")) == 2 or {"seed", "seeds"} <= set(given):
        raise click.UsageError("--seeds does not go with --seed and --runs")
    first, runs = given.get("seed", 0), given.get("runs")
    seeds = given.get("seeds") or range(first, first + (runs or 1))
    routings = [given["routing"]] if "routing" in given else list(STRATEGIES)
    if "overlay" in given:
        read_overlay(given["overlay"])  # so that a bad file is refused before anything runs
        all_cases: Iterator[VerificationCase] = (
            VerificationCase(routing, seed, overlay=given["overlay"])
            for seed in seeds
            for routing in routings
        )
        cases_per_seed = len(routings)
    else:
        topologies = [given["topology"]] if "topology" in given else list(VERIFIED_TOPOLOGIES)
        for topology in topologies:
            _check_case(topology, routings, given)
        all_cases = cases(seeds, topologies, routings, given.get("brokers"))
        cases_per_seed = len(topologies) * len(routings)
    # --runs N makes N runs in all: the first N cases, seed after seed.
    count = min(runs or cases_per_seed * len(seeds), cases_per_seed * len(seeds))
    return islice(all_cases, count), count


def _check_case(topology: str, routings: Sequence[str], given: Options) -> None:
    """Generate one overlay, so that bad options are refused before anything runs."""
    overlay = generate(topology, given.get("brokers") if "topology" in given else None)
    for routing in routings:
        strategy_name(routing, overlay)


def _print_problems(case: VerificationCase, problems: list[str]) -> None:
    for problem in problems[:PROBLEMS_SHOWN]:
        click.echo(problem)
    if len(problems) > PROBLEMS_SHOWN:
        click.echo(f"and {len(problems) - PROBLEMS_SHOWN:,} more")
    click.echo(f"  {case.command}")


def _print_problems_as_json(case: VerificationCase, problems: list[str]) -> None:
    click.echo(json.dumps({"command": case.command, "problems": problems}))
