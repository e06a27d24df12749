"""Checks of whether a model is on the GPU, as far as that is reported. Pure.

llama-server reports neither its GPU nor its layers there. What may be known: the memory in use on
the GPUs of its machine, the size of its weights, its speed, and the command that a router or
llama-swap started it with.
"""

from collections.abc import Iterator
from itertools import pairwise

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.planner.hardware import HARDWARE, Kind

GIB, MIB, GB = 1024**3, 1024**2, 1e9
# Models take more than their weights, so GPUs that hold less than most of these hold a part.
LEAST_ON_GPU = 0.9
# Generation reaches a half of its roof and more where all layers are on a GPU.
LEAST_OF_ROOF = 0.25
SLOWEST = min(
    (one for one in HARDWARE.values() if one.kind is Kind.GPU and one.bandwidth),
    key=lambda one: one.bandwidth or 0.0,
)
LAYERS = frozenset({"-ngl", "--gpu-layers", "--n-gpu-layers"})
DEVICES = frozenset({"-dev", "--device"})


def check_gpu(reading: Reading, answers: Answers) -> Finding | None:
    """A model that is not, or not whole, on the GPU that its machine has."""
    evidence = [*_memory(reading), *_speed(reading, answers)]
    if not evidence:
        return None
    return Finding(
        code="not-on-gpu",
        severity=Severity.FAULT,
        what="The model is not, or not whole, on the GPU of its machine.",
        evidence=" ".join(evidence),
        cost=_cost(answers),
        advice="Read the log at its start: it names the devices of the build, and the layers there."
        " A build without a GPU names none. Else free memory, or let manage.py plan say what fits.",
        flags=("-ngl auto",) if _values(reading.command, LAYERS) else (),
    )


def check_gpu_flags(reading: Reading, answers: Answers) -> Finding | None:
    """A command that keeps the model off every GPU."""
    has_no_layers = "0" in _values(reading.command, LAYERS)
    has_no_device = "none" in _values(reading.command, DEVICES)
    if not has_no_layers and not has_no_device:
        return None
    return Finding(
        code="gpu-off",
        severity=Severity.ADVICE,
        what="The server is told to use no GPU.",
        evidence=f"Its command has {'-ngl 0' if has_no_layers else '--device none'}.",
        advice="Leave that out where the machine has a GPU. llama-server then puts as many layers "
        "there as fit.",
        flags=("-ngl auto",) if has_no_layers else (),
    )


def _memory(reading: Reading) -> Iterator[str]:
    """Weights that are larger than all that the GPUs hold."""
    used, weights = reading.traffic.gpu_memory, reading.weight_bytes
    # Of a router or llama-swap the model may have come after the GPUs were read.
    if used is None or weights is None or not reading.has_own_routes:
        return
    if used * MIB < LEAST_ON_GPU * weights:
        yield (
            f"The weights take {weights / GIB:.1f} GiB, and all GPUs of the machine together hold "
            f"{used * MIB / GIB:.1f} GiB."
        )


def _speed(reading: Reading, answers: Answers) -> Iterator[str]:
    """Generation far below what the slowest GPU of the planner's table can do."""
    arrival, weights, bandwidth = answers.arrival, reading.weight_bytes, SLOWEST.bandwidth
    if reading.traffic.gpu_memory is None or not (arrival and weights and bandwidth):
        return
    # A mixture of experts reads less for a token: it is further from the roof than this says.
    roof = bandwidth / weights
    if arrival.speed < LEAST_OF_ROOF * roof:
        yield (
            f"It generates {arrival.speed:.1f} tokens/s. An {SLOWEST.name}, the slowest GPU that "
            f"Workbench knows, reads these weights {roof:.1f} times a second."
        )


def _cost(answers: Answers) -> str:
    return f"{answers.arrival.speed:.1f} tokens/s." if answers.arrival else NOT_MEASURED


def _values(command: str, names: frozenset[str]) -> list[str]:
    """The values of a flag in a command line."""
    words = command.replace("=", " ").split()
    return [value for name, value in pairwise(words) if name in names]
