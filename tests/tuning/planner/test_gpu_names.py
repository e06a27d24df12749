"""Names of GPUs as drivers give them."""

import pytest

from apps.tuning.planner.gpu_names import find_gpu
from apps.tuning.planner.hardware import HARDWARE, Kind


@pytest.mark.parametrize(
    ("name", "memory", "found"),
    [
        ("NVIDIA GeForce RTX 4090", 24_564, "RTX 4090"),
        ("NVIDIA GeForce RTX 3060 Ti", 8_192, "RTX 3060 Ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16_376, "RTX 4070 Ti SUPER"),
        ("RTX 3090", 24_576, "RTX 3090"),
        ("NVIDIA RTX A6000", 49_140, "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", 49_140, "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97_887, "RTX PRO 6000"),
        ("Tesla T4", 15_360, "T4"),
        ("NVIDIA L4", 23_034, "L4"),
        ("NVIDIA A100-SXM4-80GB", 81_920, "A100 80 GB"),
        ("NVIDIA A100-PCIE-40GB", 40_960, "A100 40 GB"),
        ("Tesla V100-SXM2-16GB", 16_384, "V100 16 GB"),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100 SXM"),
        ("NVIDIA H100 PCIe", 81_559, "H100 PCIe"),
        ("NVIDIA H200", 143_771, "H200"),
        ("AMD Radeon RX 7900 XTX", 24_560, "RX 7900 XTX"),
        ("AMD Instinct MI300X", 196_592, "MI300X"),
        ("Intel(R) Arc(TM) A770 Graphics", 16_225, None),  # not the name that the table has
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16_376, None),
        ("NVIDIA GeForce RTX 4080 SUPER", 16_376, None),
        ("NVIDIA GeForce RTX 3080", 12_288, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9_856, None),
        ("", 24_576, None),
    ],
)
def test_a_gpu_is_found_by_name_and_memory(name: str, memory: int, found: str | None) -> None:
    known = find_gpu(name, memory)
    assert (known.name if known else None) == found


def test_every_gpu_of_the_table_is_found_by_its_own_name() -> None:
    for known in HARDWARE.values():
        if known.kind is Kind.GPU:
            assert find_gpu(known.name, int(known.memory_gib * 1024)) == known
            assert known.teraflops
