"""The programs for GPUs, on a real one: each finds a single wrong bit, and nothing where nothing is wrong."""

import ctypes
from array import array

import pytest

from nodelib.cuda import driver_api
from nodelib.cuda.driver_api import THREADS, Cuda
from nodelib.cuda.kernels import TENSOR
from tests.gpu.here import lacks

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(lacks()), reason=lacks())]
MASK, SIZE = 0xA5A5A5A5A5A5A5A5, 1 << 30


@pytest.fixture
def context():
    context = next(Cuda().devices()).open()
    yield context
    context.close()


@pytest.fixture
def result(context):
    """Where a program puts its result: how many, which bits, the first."""
    memory = context.upload(array("Q", (0, 0, 2**64 - 1)).tobytes())
    yield memory
    context.free(memory)


def counted(context, result):
    context.wait()
    return list(array("Q", context.read(result, 24)))


@pytest.mark.parametrize("place", [0, SIZE // 2 + 5, SIZE - 1])
def test_a_single_bit_of_memory_is_found_where_it_is(context, result, place):
    memory, pairs, mask = context.allocate(SIZE), ctypes.c_uint64(SIZE // 16), ctypes.c_uint64(MASK)
    context.launch("fill", context.blocks, memory, pairs, mask)
    context.launch("check", context.blocks, memory, pairs, mask, result)
    assert counted(context, result) == [0, 0, 2**64 - 1]
    where = ctypes.c_uint64(memory.value + place)
    [byte] = context.read(where, 1)
    word = place // 8
    assert byte == (word ^ MASK) >> 8 * (place % 8) & 255, "a word holds its number, xor the mask"
    context.write(where, bytes([byte ^ 16]), 1)
    context.launch("check", context.blocks, memory, pairs, mask, result)
    assert counted(context, result) == [1, 16 << 8 * (place % 8), place // 16]
    context.free(memory)


def test_a_number_in_which_two_products_differ_is_found(context, result):
    numbers = array("f", range(1 << 18))
    one, words = context.upload(numbers.tobytes()), ctypes.c_uint64(len(numbers))
    numbers[-1] += 1
    other = context.upload(numbers.tobytes())
    for pair, wrong in (((one, one), 0), ((one, other), 1)):
        context.launch("differ", context.blocks, *pair, words, result)
        assert counted(context, result)[0] == wrong
    context.free(one, other)


@pytest.mark.parametrize(("sum_of_each", "is_wrong"), [("80", False), ("81", True)])
def test_a_sum_of_the_tensor_cores_that_is_not_the_expected_one_is_counted(
    context, result, sum_of_each, is_wrong, monkeypatch
):
    if context.device.attribute(driver_api.MAJOR) < 8:
        pytest.skip("these tensor cores do not know the instruction")
    monkeypatch.setattr(driver_api, "TENSOR", TENSOR.replace("%r1, 80;", f"%r1, {sum_of_each};"))
    context.launch("tensor", 64, result, ctypes.c_uint(1000))
    assert counted(context, result)[0] == (64 * THREADS if is_wrong else 0)
