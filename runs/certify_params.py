"""The parameters of ``certify``, grouped by the phases of its search."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FirstHomesParams:
    """The short annealing before anything else, whose homes show whether the servers are overloaded.

    Attributes
    ----------
    effort
        The length of the annealing, as a share of a usual round.
    full_effort_clients
        Up to this number of clients it is a whole round.
    time_share
        The share of the time limit it may take.
    seconds
        It may take this long in any case (but at most half of the time limit). This is enough for small instances, so
        their homes do not depend on the clock.
    most_scalings
        An instance of unusual magnitudes is scaled by the cost of the homes found so far, at most this often.
    same_scale
        It is scaled again if the annealing has lowered the cost to less than this share.
    """

    effort: float = 0.1
    full_effort_clients: int = 50
    time_share: float = 0.03
    seconds: float = 1.0
    most_scalings: int = 5
    same_scale: float = 0.25


@dataclass(frozen=True)
class RootPhaseParams:
    """The phase in which the root relaxation is solved.

    Attributes
    ----------
    progress
        An increase of the bound counts as progress above this share of the gap.
    patience
        The phase ends after this number of steps without progress.
    small_gap
        The phase also ends when the gap is below this share of the cost: then reduced-cost fixing leaves few homes.
    most_pairs
        With more pairs of labels, branch and bound would be too slow. The root phase then takes all the time.
    overloaded
        An instance counts as overloaded when delegation is more than this share of the cost.
    """

    progress: float = 0.01
    patience: int = 2
    small_gap: float = 1e-3
    most_pairs: int = 3_000_000
    overloaded: float = 0.01


@dataclass(frozen=True)
class SearchRound:
    """One round of guided annealing.

    Attributes
    ----------
    from_relaxation
        Whether it starts from the rounded relaxation; otherwise from the best homes.
    heat
        The first temperature, as a share of the median change of a proposal.
    priced
        Whether loads have prices.
    gap_share
        A home is likely if its reduced cost is below this share of the gap.
    """

    from_relaxation: bool
    heat: float
    priced: bool
    gap_share: float


@dataclass(frozen=True)
class SearchParams:
    """The annealing that runs beside the bound.

    Attributes
    ----------
    rounds
        The rounds once the bound gives guidance, repeated in this order.
    first_effort
        The length of the first guided rounds, as a share of a usual round. It doubles each time all rounds are done.
    guidance_gap
        The relaxation guides the search when the gap is below this share of the cost.
    scarce_gap
        Where capacity is scarce, the rounds for scarce capacity are used when the gap is above this share of the cost.
    scarce_change
        Capacity is scarce if the typical change of the objective is this many times as large as that of the delays. It
        is smaller than for annealing alone, which has no bound to say that better homes are likely.
    guidance_progress
        The guidance is renewed when the gap has shrunk to this share of its last value.
    gap_clients
        With more clients, only this number of clients' part of the gap is used to find likely homes, because homes that
        are far apart do not influence each other.
    long_round
        The number of seconds from which a usual round counts as long.
    proposals_per_second
        The assumed speed of annealing.
    first_round_time
        The first round may take this share of the time limit.
    long_first_heat, long_heat, long_final_heat
        If a usual round is long: the first temperature of the first round and of the others, and the last temperature.
        These rounds propose near servers, not likely homes, and the multipliers of the capacities are their first
        prices.
    long_first_effort
        If a usual round is long: the length of the first two rounds, as a share of a usual round. It doubles from then
        on.
    end
        By this share of the time limit a round must have cooled; the rest is for writing and verifying the certificate.
    close
        Homes from rounding are improved by local search if their cost is within this share of the best.
    most_clients_to_swap
        Up to this number of clients, the local search also exchanges pairs of clients.
    same_cost
        Costs that differ by less than this share are equal up to rounding; the homes found first are kept.
    """

    rounds: tuple[SearchRound, ...] = (
        SearchRound(from_relaxation=True, heat=0.2, priced=True, gap_share=0.25),
        SearchRound(from_relaxation=False, heat=0.2, priced=False, gap_share=0.5),
        SearchRound(from_relaxation=True, heat=1.0, priced=False, gap_share=0.25),
        SearchRound(from_relaxation=False, heat=0.2, priced=True, gap_share=0.25),
        SearchRound(from_relaxation=True, heat=0.2, priced=False, gap_share=0.5),
        SearchRound(from_relaxation=False, heat=1.0, priced=True, gap_share=0.5),
    )
    first_effort: float = 0.25
    guidance_gap: float = 0.05
    scarce_gap: float = 0.002
    scarce_change: float = 2.0
    guidance_progress: float = 0.8
    gap_clients: int = 400
    long_round: float = 10.0
    proposals_per_second: float = 2e6
    first_round_time: float = 0.4
    long_first_heat: float = 0.1
    long_heat: float = 0.03
    long_final_heat: float = 0.001
    long_first_effort: float = 0.5
    end: float = 0.9
    close: float = 0.004
    most_clients_to_swap: int = 500
    same_cost: float = 1e-12


@dataclass(frozen=True)
class HomePricesPhaseParams:
    """The relaxation with contents of servers, which is stronger than branch and bound where capacity is scarce.

    Attributes
    ----------
    least_clients
        It is used from this number of clients on. Branch and bound solves smaller instances.
    most_servers
        It is used up to this number of servers, because every home needs a variable.
    least_gap
        It is used if the gap of the root relaxation is above this share of the cost.
    prove_share
        The share of the time that is used to compute bounds for the certificate.
    verify_share, most_verify_seconds
        The share of the time limit that the verification may take, and its longest time, which leaves a margin to the
        usual time limit of the verifier.
    nodes_per_second, nodes_per_second_with_pairs
        The assumed speed of the verifier, without and with prices of pairs.
    progress
        An increase of the bound counts as progress above this share of the gap.
    patience
        The phase ends after this number of bounds without progress.
    """

    least_clients: int = 65
    most_servers: int = 24
    least_gap: float = 0.006
    prove_share: float = 0.25
    verify_share: float = 0.4
    most_verify_seconds: float = 40.0
    nodes_per_second: float = 40_000.0
    nodes_per_second_with_pairs: float = 15_000.0
    progress: float = 1e-3
    patience: int = 12


@dataclass(frozen=True)
class ContentsParams:
    """Branch and price over the contents of servers, which is stronger where capacity is scarce.

    Attributes
    ----------
    most_clients
        It is used up to this number of clients.
    first_nodes
        Branch and bound explores this number of nodes before. Without scarce capacity, they are usually enough.
    time_share
        The share of the remaining time that it may take. The rest is for verifying its certificate, which repeats the
        last pricing search of each leaf.
    least_verify_share
        The verification of its certificate may take this share of the time limit in any case.
    """

    most_clients: int = 64
    first_nodes: int = 100
    time_share: float = 0.75
    least_verify_share: float = 0.2


@dataclass(frozen=True)
class CertificateParams:
    """Writing and verifying the certificate.

    Attributes
    ----------
    claim_margins
        The claim is this share below the computed bound. The first share is more than the verifier loses by rounding at
        ordinary magnitudes. The others follow if the verifier does not accept the claim.
    claim_bits
        The claim is an integer multiple of ``2^-claim_bits``.
    steps_per_node
        The estimated number of steps for each explored node.
    """

    claim_margins: tuple[float, ...] = (2e-7, 1e-5, 1e-3)
    claim_bits: int = 40
    steps_per_node: float = 1.5


@dataclass(frozen=True)
class CertifyParams:
    """The parameters of :func:`certify`, by phase.

    Attributes
    ----------
    first_homes
        The short annealing at the beginning.
    root
        The root relaxation.
    search
        The annealing beside the bound.
    home_prices
        The relaxation with contents of servers.
    contents
        Branch and price.
    certificate
        Writing and verifying the certificate.
    """

    first_homes: FirstHomesParams = FirstHomesParams()
    root: RootPhaseParams = RootPhaseParams()
    search: SearchParams = SearchParams()
    home_prices: HomePricesPhaseParams = HomePricesPhaseParams()
    contents: ContentsParams = ContentsParams()
    certificate: CertificateParams = CertificateParams()


PARAMS = CertifyParams()
