"""No test waits for ever: a hang is a failure, told with all stacks."""

import faulthandler

import pytest


@pytest.fixture(autouse=True)
def time_limit():
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
