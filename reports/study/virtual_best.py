"""The virtual best method: on every instance the method with the least mean excess there.

No method can know in advance which one that is. Its excess shows how much a choice between the methods, made for each
instance, could gain over the single best method.
"""

import dataclasses
from collections.abc import Sequence

from relocbench.reports.pages.method_style import VIRTUAL_BEST
from relocbench.reports.study.excess import SAME, Measurement, per_instance


def virtual_best(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the runs of the virtual best method.

    Parameters
    ----------
    measurements
        The runs of a study.

    Returns
    -------
    list of Measurement
        For each instance the runs of its best method, under the selector ``virtual best``. Of equally good methods it
        is the one with the least mean time. There are none if the study has fewer than two methods.
    """
    methods = list(dict.fromkeys(one.selector for one in measurements))
    if len(methods) < 2:
        return []
    best: dict[str, tuple[float, float, str]] = {}
    for method in methods:
        own = [one for one in measurements if one.selector == method]
        for key, excess in per_instance(own).items():
            times = [one.seconds for one in own if one.hash == key]
            seconds = sum(times) / len(times)
            found = best.get(key)
            if found is None or excess < found[0] - SAME or (excess <= found[0] + SAME and seconds < found[1]):
                best[key] = (excess, seconds, method)
    return [
        dataclasses.replace(one, selector=VIRTUAL_BEST)
        for one in measurements
        if one.hash in best and one.selector == best[one.hash][2]
    ]


def times_best(measurements: Sequence[Measurement]) -> dict[str, int]:
    """Count for each method the instances on which no other method has a smaller mean excess.

    Parameters
    ----------
    measurements
        The runs.

    Returns
    -------
    dict
        The number of instances by selector. Equally good methods all count.
    """
    methods = dict.fromkeys(one.selector for one in measurements)
    means = {name: per_instance(one for one in measurements if one.selector == name) for name in methods}
    least: dict[str, float] = {}
    for values in means.values():
        for key, excess in values.items():
            least[key] = min(excess, least.get(key, excess))
    return {name: sum(excess <= least[key] + SAME for key, excess in values.items()) for name, values in means.items()}
