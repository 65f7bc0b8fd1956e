"""``relocbench moving``: timelines, in which clients move, and policies that compute homes again."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relocbench.commands.options import FIELD, REAL, Set, Sigma, read_parameters, read_seeds
from relocbench.instances.errors import plural
from relocbench.runs.progress import live_line, progress
from relocbench.terminal import print_json, print_table, resumable

if TYPE_CHECKING:
    from relocbench.instances.timeline.timeline import Timeline

app = typer.Typer(
    help="Clients that move: how often must homes be computed again, and what does that cost?\n\n"
    "Example: relocbench moving generate --speed 50 --seed 3 --out moving.parquet",
    no_args_is_help=True,
)

PRICES = "Prices"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path, typer.Option(help="Timeline file to write (.parquet).")]
HandoverPrice = Annotated[
    float | None,
    typer.Option(min=0, help="Cost of a client's new home, in ms of delay. Default: 50.", rich_help_panel=PRICES),
]
SpoolPrice = Annotated[
    float | None,
    typer.Option(min=0, help="Cost of a copied message of spool, in ms of delay. Default: 1.", rich_help_panel=PRICES),
]
Period = Annotated[
    float | None,
    typer.Option(
        help="Seconds between two publications of a publisher to a topic. Default: 1.", rich_help_panel=PRICES
    ),
]
EpochLength = Annotated[float, typer.Option(help="Seconds of an epoch.")]


@app.command("generate")
def _generate(
    out: Out,
    seed: Annotated[int, typer.Option(help="Seed of the timeline.", min=0)] = 0,
    movement: Annotated[
        str, typer.Option(help="How clients move: static, waypoint, gauss-markov or commuters.")
    ] = "waypoint",
    speed: Annotated[float, typer.Option(help="Mean speed of a client in km/h.", min=0)] = 30.0,
    epochs: Annotated[int, typer.Option(help="Number of epochs.", min=1)] = 60,
    epoch_length: EpochLength = 60.0,
    pause: Annotated[float, typer.Option(help="Mean seconds of a pause (waypoint).", min=0)] = 60.0,
    memory: Annotated[float, typer.Option(help="Seconds over which a velocity is kept (gauss-markov).")] = 300.0,
    topic_churn: Annotated[float, typer.Option(help="How often a topic is replaced, per hour.", min=0)] = 0.0,
    handover_price: HandoverPrice = None,
    spool_price: SpoolPrice = None,
    publication_period: Period = None,
    sigma: Sigma = None,
    topics: Annotated[int | None, typer.Option(help="Number of topics N.", rich_help_panel=FIELD)] = None,
    servers: Annotated[int | None, typer.Option(help="Number of servers L.", rich_help_panel=FIELD)] = None,
    load: Annotated[
        float | None, typer.Option(help="Load of the first epoch, as for `generate`.", rich_help_panel=FIELD)
    ] = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Generate a timeline: an instance of the family paper whose clients move and whose topics may change.

    Example: relocbench moving generate --speed 50 --sigma 5 --seed 3 --out moving.parquet

    Example: relocbench moving generate --movement commuters --topic-churn 1 --out commuters.parquet
    """
    from relocbench.instances.timeline.moving_generator import generate_timeline

    given: dict[str, Any] = {
        "movement": movement,
        "speed": speed,
        "n_epochs": epochs,
        "epoch_length": epoch_length,
        "pause": pause,
        "memory": memory,
        "topic_churn": topic_churn,
        "handover_price": handover_price,
        "spool_price": spool_price,
        "publication_period": publication_period,
        "sigma": sigma,
        "topics": topics,
        "servers": servers,
        "load": load,
    }
    _write(generate_timeline(seed, **read_parameters(given, set_ or [])), out, as_json)


@app.command("import")
def _import(
    trace: Annotated[
        Path,
        typer.Argument(
            help="CSV in the order of time: time (seconds; or minute, hour), client, and x,y in km, latitude,longitude "
            "or cell. May be compressed (.gz)."
        ),
    ],
    out: Out,
    servers: Annotated[
        Path | None,
        typer.Option(help="CSV of servers, as for `convert`. Default: the sites.", rich_help_panel=REAL),
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="CSV with the positions of the cells that the trace names.", rich_help_panel=REAL),
    ] = None,
    members: Annotated[
        Path | None, typer.Option(help="CSV of memberships, as for `convert`.", rich_help_panel=REAL)
    ] = None,
    social: Annotated[
        Path | None,
        typer.Option(help="Instead of --members: edge list `follower<TAB>followee`.", rich_help_panel=REAL),
    ] = None,
    epoch_length: EpochLength = 60.0,
    stay: Annotated[float, typer.Option(help="Seconds that a client stays present after its last row.", min=0)] = 0.0,
    topics: Annotated[int, typer.Option(help="Number of topics (with --social).", min=1)] = 64,
    n_servers: Annotated[
        int, typer.Option(help="Number of servers, drawn from the sites; 0 for all of them.", min=0)
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all draws.", min=0)] = 0,
    storage: Annotated[float | None, typer.Option(help="Storage capacity of every server.")] = None,
    compute: Annotated[float | None, typer.Option(help="Compute capacity of every server.")] = None,
    load: Annotated[
        float | None, typer.Option(help="Scale the capacities to this load in the epoch with the largest load.")
    ] = None,
    spool_per_member: Annotated[
        float, typer.Option("--spool-per-member", "-p", help="Spool size per present member p.", min=0)
    ] = 2.0,
    cloud_delay: Annotated[float, typer.Option(help="Delay of one way to the cloud in ms.")] = 5.0,
    delay_per_km: Annotated[float, typer.Option(help="Delay per km in ms.")] = 0.1,
    handover_price: HandoverPrice = None,
    spool_price: SpoolPrice = None,
    publication_period: Period = None,
    name: Annotated[str, typer.Option(help="Name of the timeline. Default: that of the trace.")] = "",
    as_json: Json = False,
) -> None:
    """Make a timeline from a trace of positions or cells, with topics from a file of members or a follower graph.

    Example: relocbench moving import trace.csv --servers servers.csv --members members.csv --out moving.parquet

    Example: relocbench moving import taxis.csv.gz --sites cells.csv --social edges.txt --load 1.1 --out taxis.parquet
    """
    from relocbench.instances.timeline.prices import Prices
    from relocbench.instances.timeline.trace_csv import import_trace

    timeline = import_trace(
        trace,
        servers=servers,
        sites=sites,
        members=members,
        social=social,
        prices=Prices(**_given_prices(handover_price, spool_price, publication_period)),
        name=name,
        epoch_length=epoch_length,
        stay=stay,
        topics=topics,
        n_servers=n_servers,
        seed=seed,
        storage=storage,
        compute=compute,
        load=load,
        spool_per_member=spool_per_member,
        cloud_delay=cloud_delay,
        delay_per_km=delay_per_km,
    )
    _write(timeline, out, as_json)


def _given_prices(handover: float | None, spool: float | None, publication_period: float | None) -> dict[str, float]:
    given = {"handover": handover, "spool": spool, "publication_period": publication_period}
    return {name: value for name, value in given.items() if value is not None}


def _write(timeline: "Timeline", out: Path, as_json: bool) -> None:
    from relocbench.instances.timeline.timeline import Timeline
    from relocbench.instances.timeline.timeline_parquet import write_timeline

    watched = Timeline(
        timeline.network,
        lambda: progress(timeline.epochs(), timeline.n_epochs, "writing epochs"),
        timeline.n_epochs,
        name=timeline.name,
        prices=timeline.prices,
        parameters=timeline.parameters,
    )
    digest = write_timeline(watched, out)
    if as_json:
        print_json({"file": str(out), "name": timeline.name, "hash": digest, "epochs": timeline.n_epochs})
    else:
        print(f"{repr(timeline).strip('<>')} in {out}")


@app.command("describe")
def _describe(
    timeline: Annotated[Path, typer.Argument(help="Timeline file.")],
    as_json: Json = False,
) -> None:
    """Print the sizes of a timeline, its prices, and how much its clients and topics change.

    Example: relocbench moving describe moving.parquet
    """
    from relocbench.instances.timeline.summary import summarise
    from relocbench.instances.timeline.timeline_parquet import read_timeline

    read = read_timeline(timeline)
    found = {
        "name": read.name,
        "hash": read.hash,
        "epochs": read.n_epochs,
        "servers": read.n_servers,
        "handover_price": read.prices.handover,
        "spool_price": read.prices.spool,
        "publication_period": read.prices.publication_period,
        **summarise(progress(read.epochs(), read.n_epochs, "reading epochs")),
    }
    if as_json:
        print_json(found)
        return
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:<{width}}  {' to '.join(map(str, value)) if isinstance(value, list) else value}")


@app.command("policies")
def _policies(as_json: Json = False) -> None:
    """List the policies with their parameters.

    Example: relocbench moving policies
    """
    import inspect

    from relocbench.runs.timeline.policies import POLICIES
    from relocbench.runs.timeline.policy_selectors import parameters_of

    found = [
        {
            "name": name,
            "parameters": {key: spec.default for key, spec in parameters_of(function).items()},
            "summary": (inspect.getdoc(function) or "").partition("\n")[0].replace("``", ""),
        }
        for name, function in POLICIES.items()
    ]
    if as_json:
        print_json(found)
        return
    rows = [
        (name, ", ".join(f"{key}={value}" for key, value in parameters.items()), summary)
        for name, parameters, summary in map(dict[str, Any].values, found)
    ]
    print_table("Policies", ("name", "parameters", "what it does"), rows)


@app.command("run")
def _run(
    timelines: Annotated[list[Path], typer.Argument(help="Timeline files.")],
    out: Annotated[Path, typer.Option(help="Folder for the results. Replays that are there are not repeated.")],
    policy: Annotated[
        list[str],
        typer.Option(
            "--policies",
            "--policy",
            help="Policies, separated by commas; repeatable: a name that `relocbench moving policies` lists, or "
            "mine.py:function.",
        ),
    ],
    method: Annotated[
        list[str],
        typer.Option("--methods", "--method", help="Selectors of methods, separated by commas; repeatable."),
    ],
    seed: Annotated[str, typer.Option("--seeds", "--seed", help="Seeds of the methods: 3, 0-9 or 1,4,7.")] = "0",
    time_limit: Annotated[float, typer.Option(help="Seconds for each run of the method.", min=0)] = 60.0,
    stale: Annotated[
        bool, typer.Option("--stale", help="New homes come into force after the time that computing them took.")
    ] = False,
    stale_seconds: Annotated[
        float | None, typer.Option(help="As --stale, but every computation takes these seconds.", min=0)
    ] = None,
    handover_price: HandoverPrice = None,
    spool_price: SpoolPrice = None,
    publication_period: Period = None,
    as_json: Json = False,
) -> None:
    """Replay timelines under policies, each with each method, and print what the homes cost.

    The prices are those of the timeline, unless they are given.

    Example: relocbench moving run moving.parquet --policy never,always,relocate --method reloc --out replays
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.timeline.timeline_parquet import read_timeline
    from relocbench.runs.selectors import parse_selectors, require_available
    from relocbench.runs.timeline.policy_selectors import parse_policies
    from relocbench.runs.timeline.replay import Replay, Staleness, replay
    from relocbench.runs.timeline.replay_rows import EpochRow

    policies, selectors = parse_policies(policy), parse_selectors(method)
    if not policies or not selectors:
        raise InputError("--policies" if not policies else "--methods", "expected at least one")
    require_available(selectors)
    staleness: Staleness = stale if stale_seconds is None else stale_seconds
    prices = _given_prices(handover_price, spool_price, publication_period)
    chosen = [read_timeline(path).with_prices(**prices) for path in timelines]
    seeds = read_seeds("--seeds", seed) or [0]
    tasks = list(itertools.product(chosen, policies, selectors, seeds))
    done: list[Replay] = []
    with resumable(out), live_line() as show:
        for timeline, rule, selector, number in tasks:

            def on_epoch(row: EpochRow, what: str = f"{timeline.name}, {rule}, {selector}, seed {number}") -> None:
                show(f"replay {len(done) + 1}/{len(tasks)}: {what}: epoch {row.epoch + 1}")

            done.append(
                replay(
                    timeline,
                    rule,
                    selector,
                    seed=number,
                    time_limit=time_limit,
                    stale=staleness,
                    out=out,
                    on_epoch=on_epoch,
                )
            )
    if as_json:
        print_json([one.values() for one in done])
        return
    columns = ("timeline", "policy", "method", "seed", "cost", "delay", "handover", "spool")
    more = ("handovers/h", "overload", "solves", "seconds")
    rows = [
        (
            one.timeline.name,
            str(one.policy),
            str(one.method),
            str(one.seed),
            *(f"{value:.6g}" for value in (one.cost.total, one.cost.delay_cost)),
            *(f"{value:.6g}" for value in (one.cost.handover_cost, one.cost.spool_cost)),
            f"{one.cost.handovers_per_client_hour:.3g}",
            f"{one.cost.overloaded_share:.0%}",
            str(one.solves),
            f"{one.solve_seconds:.3g}",
        )
        for one in done
    ]
    print_table("Cost of the schedules, in ms of delay", (*columns, *more), rows, (*columns[3:], *more))
    print("handovers/h: per client and hour; overload: share of the time with θ < 1 at some server")
    print(f"{plural(len(done), 'result')} in {out}")


@app.command("certify")
def _certify(
    timeline: Annotated[Path, typer.Argument(help="Timeline file.")],
    out: Annotated[Path, typer.Option(help="Certificate file to write (.json, .json.gz).")],
    time_limit: Annotated[
        float, typer.Option(help="Seconds for the bound, including its verification.", min=0)
    ] = 120.0,
    schedule: Annotated[
        Path | None,
        typer.Option(
            help="A good schedule: a schedule or certificate (.json), or a replay (.parquet). Default: the policy "
            "relocate[ahead=4]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that policy.", min=0)] = 0,
    separate: Annotated[
        bool, typer.Option("--separate", help="Add up the bounds of the epochs; do not count relocation.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Prove a lower bound on the cost of every schedule, which `relocbench verify` checks in exact arithmetic.

    Ctrl-C ends the search early and writes the certificate of what is proved by then.

    Example: relocbench moving certify moving.parquet --time-limit 120 --out cert.json
    """
    from relocbench.formulations.certificates.certificate import check_certificate_path
    from relocbench.formulations.certificates.timeline_certificate import write_timeline_certificate
    from relocbench.instances.gap import gap
    from relocbench.instances.timeline.timeline_parquet import read_timeline
    from relocbench.runs.timeline.certify_timeline import certify_timeline

    check_certificate_path(out)
    read = read_timeline(timeline)
    with live_line() as show:
        show("loading, and finding a schedule")

        def on_progress(seconds: float, cost: float, bound: float) -> None:
            show(f"cost {cost:.8g}, lower bound {bound:.8g}, gap {gap(cost, bound):.3%} after {seconds:.1f} s")

        found = certify_timeline(
            read,
            schedule=schedule,
            seed=seed,
            time_limit=time_limit,
            potentials=not separate,
            on_progress=on_progress,
        )
    write_timeline_certificate(found.certificate, out)
    answer = {
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "status": found.verdict.status,
        "epoch_bounds": list(found.epoch_bounds),
        "steps": found.verdict.steps,
        "bytes": out.stat().st_size,
        "seconds": found.certificate.made["seconds"],
    }
    if as_json:
        print_json(answer)
        return
    print(
        f"{found.verdict.status}: cost {found.objective:.10g}, lower bound {found.bound:.10g} "
        f"(gap {found.verdict.gap_text}); {answer['seconds']:.1f} s"
    )
    print(f"certificate: {out}, {plural(read.n_epochs, 'epoch')}, {out.stat().st_size / 1000:.0f} kB")
    print(f"to verify it: relocbench verify {timeline} {out}")


@app.command("solve")
def _solve(
    timeline: Annotated[Path, typer.Argument(help="Timeline file.")],
    out: Annotated[Path, typer.Option(help="Schedule file to write (.json).")],
    method: Annotated[str, typer.Option(help="enumerate or milp-strong.")] = "enumerate",
    time_limit: Annotated[float, typer.Option(help="Seconds for the solver of milp-strong.", min=0)] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the solver of milp-strong.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Find the schedule of least cost of a tiny timeline.

    Example: relocbench moving solve tiny.parquet --method milp-strong --out schedule.json
    """
    from relocbench.instances.gap import gap
    from relocbench.instances.timeline.timeline_parquet import read_timeline
    from relocbench.runs.timeline.schedule_file import check_schedule_path, write_schedule
    from relocbench.runs.timeline.solve_timeline import solve_timeline

    check_schedule_path(out)
    read = read_timeline(timeline)
    found = solve_timeline(read, method, seed=seed, time_limit=time_limit)
    write_schedule(read, found.homes, out, {"method": method})
    bound = max(found.bound, 0.0)  # no cost is below 0
    answer = {"file": str(out), "status": found.status, "bound": bound, "gap": gap(found.cost.total, bound)}
    if as_json:
        print_json(answer | found.cost.values())
    else:
        print(f"{found.status}: cost {found.cost.total:.10g}, lower bound {bound:.10g}; schedule in {out}")
