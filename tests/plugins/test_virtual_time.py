"""Only the tests that are marked have virtual time, and their loops alone are changed for it."""

import asyncio
import time

import looptime
import pytest


@pytest.mark.looptime
async def test_an_hour_takes_no_time_where_the_mark_stands():
    begun = time.monotonic()
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == pytest.approx(3600)
    assert time.monotonic() - begun < 600


@pytest.mark.looptime(start=7)
class TestOptions:
    @pytest.mark.looptime(noop_cycles=0)
    async def test_the_options_of_all_marks_hold(self):
        assert asyncio.get_running_loop().time() == 7

    def test_a_test_without_a_loop_may_stand_beside_them(self):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()

    @pytest.mark.looptime(start=8)
    async def test_the_nearest_mark_comes_first(self):
        assert asyncio.get_running_loop().time() == 8


async def test_without_the_mark_the_loop_is_as_it_comes():
    assert not isinstance(asyncio.get_running_loop(), looptime.LoopTimeEventLoop)
