"""The Euclidean delay for compiled code, bit for bit equal to ``Instance.client_delay``."""

import numpy as np

from relocbench.instances.kernels.compiled import compiled


@compiled
def euclidean_delay(dx: float, dy: float, delay_per_km: float) -> float:
    """Return ``γ·√(dx² + dy²)``, each operation rounded as IEEE 754 prescribes.

    Parameters
    ----------
    dx, dy
        Differences of the coordinates, in km.
    delay_per_km
        ``γ``, in ms per km.

    Returns
    -------
    float
        The delay in ms.
    """
    return float(delay_per_km * np.sqrt(dx * dx + dy * dy))
