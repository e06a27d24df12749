"""Model servers and proxies themselves, driven through the workbench's own doors.

`programs` finds them, `stacks` starts them, `workbench` drives them, and each of `checks` is
run against each of them by `test_checks`. What this machine does not have is skipped.
"""

import pytest

pytest.register_assert_rewrite("tests.backends.checks", "tests.backends.workbench")
