"""The Euclidean delay for compiled code: the same double as ``Instance.client_delay`` gives."""

import numpy as np

from relocbench.instances.kernels.compiled import compiled


@compiled
def euclidean_delay(dx: float, dy: float, delay_per_km: float) -> float:
    """Return ``γ·√(dx² + dy²)``, each step rounded as IEEE 754 says."""
    return float(delay_per_km * np.sqrt(dx * dx + dy * dy))
