"""Write the program that an export carries: numpy and the OpenAI SDK, without Workbench."""

from pathlib import Path
from string import Template

PROGRAM = Template(Path(__file__).with_name("predict.py.template").read_text("utf-8"))


def snippet(base_url: str) -> str:
    """Return the program, set to an embedding server of one's own."""
    return PROGRAM.substitute(base_url=base_url)
