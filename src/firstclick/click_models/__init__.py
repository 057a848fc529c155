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

__all__ = [
    "CLICK_MODELS",
    "Cascade",
    "ClickModel",
    "DependentClick",
    "DependentCounted",
    "DynamicBayesian",
    "LeavingUnseen",
    "PositionBased",
    "Scroll",
    "make_click_model",
]
