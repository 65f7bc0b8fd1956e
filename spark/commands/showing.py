"""What a cost looks like at a scale where a table of servers would be too long."""

from typing import Any


def show_cost(cost: dict[str, Any]) -> None:
    """Print the cost and the extremes of what servers bear."""
    print(f"Y = {cost['Y']:.9g}   Y1 = {cost['Y1']:.9g}   Y2 = {cost['Y2']:.9g}")
    print(f"ΣD = {cost['objective']:.12g} over {cost['publications']:,} publications")
    busy = sum(share < 1.0 for share in cost["theta"])
    most = f"most storage {max(cost['storage']):,.6g}, most compute {max(cost['compute']):,.6g}"
    print(f"{len(cost['theta']):,} servers, {busy:,} overloaded, least θ {min(cost['theta']):.4f}; {most}")
