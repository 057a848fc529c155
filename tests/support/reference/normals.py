"""Independent normal scores, a referee for the chances of orders."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr


class Normals(NamedTuple):
    """Normal scores with the methods of `quadrature.LogitBeta`."""

    means: np.ndarray
    deviations: np.ndarray

    def log_density(self, items, t):
        deviations = self.deviations[items, None]
        z = (t - self.means[items, None]) / deviations
        return -0.5 * z * z - np.log(deviations * np.sqrt(2 * np.pi))

    def log_distribution(self, items, t):
        return log_ndtr((t - self.means[items, None]) / self.deviations[items, None])

    def centres(self, items):
        return self.means[items], self.deviations[items]
