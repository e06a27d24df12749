"""Common hardware: memory and bandwidth as makers publish them, typed in by hand (pure)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from apps.tuning.errors import PlanError

GIB = 1024**3
MAX_GIB, MAX_COUNT = 16_384, 64
CUDA_BYTES = GIB // 2  # about what a CUDA context takes
# Share of an Apple computer's memory that macOS lends to the GPU.
METAL_SHARE_SMALL, METAL_SHARE_LARGE, METAL_LARGE_GIB = 2 / 3, 3 / 4, 36


class Kind(StrEnum):
    GPU = "GPU"
    APPLE = "Apple silicon"
    CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Hardware:
    name: str
    kind: Kind
    memory_gib: float
    bandwidth_gb: float | None
    """10^9 bytes a second; None: not known."""
    teraflops: float | None = None
    """10^12 operations a second on matrices of 16 bits, without sparsity; None: not known."""
    count: int = 1
    """Several of the same: memory adds up, the layers take turns, so bandwidth does not."""

    @property
    def available_bytes(self) -> int:
        """The memory that a model server can have."""
        share = 1.0
        if self.kind is Kind.APPLE:
            large = self.memory_gib >= METAL_LARGE_GIB
            share = METAL_SHARE_LARGE if large else METAL_SHARE_SMALL
        return int(self.memory_gib * self.count * share * GIB)

    @property
    def runtime_bytes(self) -> int:
        return CUDA_BYTES * self.count if self.kind is Kind.GPU else 0

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second."""
        return None if self.bandwidth_gb is None else self.bandwidth_gb * 1e9

    @property
    def flops(self) -> float | None:
        """Operations a second."""
        return None if self.teraflops is None else self.teraflops * 1e12


_GPUS = """
RTX 3050|8|224|18
RTX 3060|12|360|25
RTX 3060 Ti|8|448|32
RTX 3070|8|448|41
RTX 3080|10|760|60
RTX 3090|24|936|71
RTX 4060|8|272|30
RTX 4060 Ti|16|288|44
RTX 4070|12|504|58
RTX 4070 Ti SUPER|16|672|88
RTX 4080|16|717|97
RTX 4090|24|1008|165
RTX 5060 Ti|16|448|47
RTX 5070|12|672|62
RTX 5070 Ti|16|896|88
RTX 5080|16|960|113
RTX 5090|32|1792|210
RTX A4000|16|448|77
RTX A6000|48|768|155
RTX 6000 Ada|48|960|364
RTX PRO 6000|96|1792|500
T4|15|320|65
L4|22.5|300|121
L40S|45|864|362
A10|22.5|600|125
V100 16 GB|16|900|112
V100 32 GB|32|900|112
A100 40 GB|39.5|1555|312
A100 80 GB|79|1935|312
H100 PCIe|79|2000|756
H100 SXM|79|3350|989
H200|139|4800|989
RX 6800 XT|16|512|41
RX 7800 XT|16|624|75
RX 7900 XT|20|800|103
RX 7900 XTX|24|960|123
RX 9070 XT|16|640|97
MI300X|192|5300|1307
Arc A770|16|560|138
Arc B580|12|456|117
"""
_APPLE = """
M1|16|68
M1 Pro|32|200
M1 Max|64|400
M1 Ultra|128|800
M2|16|100
M2 Pro|32|200
M2 Max|64|400
M2 Ultra|128|800
M3|16|100
M3 Pro|36|150
M3 Max|64|400
M3 Ultra|256|819
M4|16|120
M4 Pro|48|273
M4 Max|64|546
M5|16|153
"""
_CPUS = """
CPU, DDR4, two channels|32|51
CPU, DDR5, two channels|32|90
CPU, DDR5, eight channels|128|307
Ryzen AI Max+ 395|128|256
"""


def _rows(text: str, kind: Kind, prefix: str = "") -> list[Hardware]:
    rows = (line.split("|") for line in text.strip().splitlines())
    return [
        Hardware(
            prefix + name,
            kind,
            float(memory),
            float(bandwidth),
            float(flops[0]) if flops else None,
        )
        for name, memory, bandwidth, *flops in rows
    ]


HARDWARE = {
    found.name: found
    for found in (
        *_rows(_GPUS, Kind.GPU),
        *_rows(_APPLE, Kind.APPLE, "Apple "),
        *_rows(_CPUS, Kind.CPU),
    )
}


def find_hardware(name: str, *, memory_gib: float | None = None, count: int = 1) -> Hardware:
    """Return the hardware of this name, in any case, with another memory if one is given.

    Raises:
        PlanError: no or several entries of the table have the name, or a number is impossible.
    """
    _check(memory_gib, count)
    wanted = " ".join(name.lower().removeprefix("nvidia ").removeprefix("geforce ").split())
    exact = [known for known in HARDWARE.values() if known.name.lower() == wanted]
    found = exact or [known for known in HARDWARE.values() if wanted in known.name.lower()]
    if len(found) != 1:
        named = ", ".join(known.name for known in found or HARDWARE.values())
        raise PlanError(f"“{name}” is not one entry of the hardware table. Choose from: {named}.")
    return replace(found[0], count=count, memory_gib=memory_gib or found[0].memory_gib)


def unnamed_hardware(memory_gib: float, *, count: int = 1) -> Hardware:
    """GPUs of which only the memory is known.

    Raises:
        PlanError: a number is impossible.
    """
    _check(memory_gib, count)
    return Hardware("GPU", Kind.GPU, memory_gib, None, count=count)


def _check(memory_gib: float | None, count: int) -> None:
    if not 0 < count <= MAX_COUNT or (memory_gib is not None and not 0 < memory_gib <= MAX_GIB):
        raise PlanError(
            f"The memory must be between 0 and {MAX_GIB:,} GiB, and there must be 1 to {MAX_COUNT}"
            " GPUs."
        )
