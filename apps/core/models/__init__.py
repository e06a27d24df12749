"""Models of every room: owned rows, API keys, login links, and how pages look."""

from apps.core.models.api_keys import RESTORABLE, ApiKey, KeyLane, KeyScope
from apps.core.models.appearance import Appearance, Density, TextSize, Theme
from apps.core.models.devices import Device
from apps.core.models.limits import Limits, PersonLimits
from apps.core.models.owned import Owned, OwnedQuerySet
from apps.core.models.people import (
    INVITATION_LIFETIME,
    LOGIN_LINK_LIFETIME,
    LoginLink,
    LoginLinkQuerySet,
    Removal,
)
from apps.core.models.tokens import digest

__all__ = [
    "INVITATION_LIFETIME",
    "LOGIN_LINK_LIFETIME",
    "RESTORABLE",
    "ApiKey",
    "Appearance",
    "Density",
    "Device",
    "KeyLane",
    "KeyScope",
    "Limits",
    "LoginLink",
    "LoginLinkQuerySet",
    "Owned",
    "OwnedQuerySet",
    "PersonLimits",
    "Removal",
    "TextSize",
    "Theme",
    "digest",
]
