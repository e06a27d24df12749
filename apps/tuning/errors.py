"""What can go wrong while a server is planned; each text says what, where and what to do."""


class PlanError(ValueError):
    """The plan cannot be made from what was given."""


class HeaderError(PlanError):
    """The bytes are no GGUF header that can be read."""


class SweepError(Exception):
    """A server cannot be measured, or not now."""


class DoctorError(Exception):
    """A server cannot be examined now."""
