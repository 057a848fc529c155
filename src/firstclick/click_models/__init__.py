"""Click models: how a user goes through a slate, and which of them fits a log."""

from firstclick.click_models.base import (
    CLICK_MODELS,
    Cascade,
    ClickModel,
    DependentClick,
    DependentCounted,
    DynamicBayesian,
    LeavingUnseen,
    PositionBased,
    Scroll,
    make_click_model,
)
from firstclick.click_models.click_fit import FITTED_MODELS, ClickFit, load_click_fit
from firstclick.click_models.fitting import Refits, fit, fit_sessions
from firstclick.click_models.sessions import Sessions, read_sessions

__all__ = [
    "CLICK_MODELS",
    "FITTED_MODELS",
    "Cascade",
    "ClickFit",
    "ClickModel",
    "DependentClick",
    "DependentCounted",
    "DynamicBayesian",
    "LeavingUnseen",
    "PositionBased",
    "Refits",
    "Scroll",
    "Sessions",
    "fit",
    "fit_sessions",
    "load_click_fit",
    "make_click_model",
    "read_sessions",
]
