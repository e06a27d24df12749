"""Each check against each backend: python -m pytest -rs tests/backends"""

import pytest

from tests.backends.backend import Backend
from tests.backends.checks import all_checks
from tests.backends.stacks import all_stacks
from tests.backends.workbench import Workbench

CHECKS = all_checks()

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("backend", all_stacks(), indirect=True)
async def test_check(backend: Backend, check: str, workbench: Workbench) -> None:
    if check in backend.faults:
        pytest.xfail(backend.faults[check])
    await CHECKS[check](backend, workbench)
