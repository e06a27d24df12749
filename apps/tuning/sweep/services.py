"""Measures a server at different loads, on idle slots alone, for some minutes at most."""

import asyncio
import time

from redis.exceptions import RedisError

from apps.llm.errors import LLMError
from apps.servers.services import Target
from apps.tuning.running_command import read_command
from apps.tuning.sweep.choose_model import choose_model
from apps.tuning.sweep.measuring.progress import PAUSED, OnProgress, Progress
from apps.tuning.sweep.measuring.sweep import Sweep
from apps.tuning.sweep.results import SweepResults

__all__ = ["PAUSED", "Progress", "choose_model", "sweep_server"]

DEFAULT_MINUTES = 5
MOST_MINUTES = 120


async def sweep_server(
    target: Target, minutes: float, on_progress: OnProgress, *, owner: int | None = None
) -> SweepResults:
    """Measure a model of a server; return what was measured when the time was over.

    Raises:
        SweepError: nothing could be measured.
    """
    sweep = Sweep(target, on_progress, owner)
    began = time.monotonic()
    try:
        async with asyncio.timeout(minutes * 60):
            sweep.results.flags = await read_command(target)
            await sweep.run()
    except TimeoutError:
        sweep.results.notes.append(
            f"Time was up after {sweep.done} of {sweep.results.planned} measurements."
        )
    except RedisError as error:
        sweep.fail("Redis does not answer, so no slot could be held.", error)
    except LLMError as error:
        sweep.fail(str(error), error)
    sweep.results.seconds = time.monotonic() - began
    return sweep.results
