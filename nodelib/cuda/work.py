"""One GPU put to work: memory, arithmetic, tensor cores, as long as is asked for. Every result is compared.

Memory is written and compared by the GPU itself, every bit both ways. Matrices hold small whole numbers, so that a
product is exact: the first one is compared on the host, those that follow with the first. What is found is told step
by step, since any call may hang.
"""

import ctypes
import time
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any

from nodelib.cuda.driver_api import BUS_BITS, MAJOR, MEMORY_KILOHERTZ, THREADS, Broken, Context, CudaDevice

BLOCK = 1 << 20  # memory is tried in whole MiB
MASKS = (0xA5A5A5A5A5A5A5A5, 0x5A5A5A5A5A5A5A5A)
SIZE = 512  # rows of a matrix
PRODUCTS, TENSORS = 50, 10  # in one round of load
TENSOR_TIMES = 50_000
TENSOR_FLOPS = TENSOR_TIMES * 2 * 2 * 16 * 16 * 8  # of each warp of 32 threads
TENSOR_MAJOR = 8  # compute capability of the first GPUs that know this instruction

Say = Callable[..., None]


def put_to_work(device: CudaDevice, megabytes: int, seconds: float, say: Say) -> None:
    """Let one GPU work for so long, and tell what came of it. Raises Broken with what is wrong."""
    say(at="context", name=device.name)
    context = device.open()
    load = _Load(context, megabytes, say)
    rounds, until = 0, time.monotonic() + seconds
    while not rounds or time.monotonic() < until:
        load.turn()
        rounds += 1
    load.tell(rounds)
    context.close()


class _Load:
    """What one GPU does in each round, and the best figures so far."""

    def __init__(self, context: Context, megabytes: int, say: Say):
        self._context, self._say = context, say
        self._left, self._right, self._expected = (numbers.tobytes() for numbers in _matrices())
        self._result = context.allocate(24)
        self._product, self._again = context.allocate(len(self._expected)), context.allocate(len(self._expected))
        self._inputs = [context.upload(self._left), context.upload(self._right)]
        self._has_tensor = context.device.attribute(MAJOR) >= TENSOR_MAJOR
        self._best: dict[str, float] = {}
        self._products = 0
        free = context.free_bytes()
        self._size = min(megabytes << 20, free // 10 * 9) // BLOCK * BLOCK
        if not self._size:
            raise Broken(f"only {free >> 20} MiB of its memory are free", "memory")
        self._memory = context.allocate(self._size)

    def turn(self) -> None:
        """One round: all of the memory, some products, the tensor cores."""
        for mask in MASKS:
            self._try_memory(mask)
        self._say(at="arithmetic")
        if not self._products:
            self._multiply_first()
        self._multiply_again()
        if self._has_tensor:
            self._try_tensor()

    def tell(self, rounds: int) -> None:
        """Say what was done, and how fast."""
        device = self._context.device
        nominal = 2 * device.attribute(MEMORY_KILOHERTZ) * 1000 * device.attribute(BUS_BITS) // 8
        figures: dict[str, Any] = {name: round(value, 1) for name, value in self._best.items()}
        amounts = {"megabytes": self._size >> 20, "products": self._products, "rounds": rounds}
        self._say(address=device.address, nominal=round(nominal / 1e9, 1), **amounts, **figures)

    def _try_memory(self, mask: int) -> None:
        self._say(at="memory")
        pairs, bits = ctypes.c_uint64(self._size // 16), ctypes.c_uint64(mask)
        blocks = self._context.blocks
        write = self._context.seconds(lambda: self._context.launch("fill", blocks, self._memory, pairs, bits))
        self._clear()
        read = self._context.seconds(
            lambda: self._context.launch("check", blocks, self._memory, pairs, bits, self._result)
        )
        self._keep(write=self._size / write / 1e9, read=self._size / read / 1e9)
        wrong, changed, first = array("Q", self._context.read(self._result, 24))
        if wrong:
            what = f"{wrong} of {pairs.value} places, the first at byte {16 * first:#x}, bits {changed:#x}"
            raise Broken(f"its memory does not hold what was written ({mask:#x}): {what}", "memory")

    def _multiply_first(self) -> None:
        self._multiply(self._product)
        self._context.wait()
        if self._context.read(self._product, len(self._expected)) != self._expected:
            raise Broken("it multiplies wrongly", "arithmetic")

    def _multiply_again(self) -> None:
        self._clear()
        words = ctypes.c_uint64(SIZE * SIZE)
        for _ in range(PRODUCTS):
            self._multiply(self._again)
            self._context.launch("differ", self._context.blocks, self._product, self._again, words, self._result)
        self._products += PRODUCTS
        wrong = self._wrong()
        if wrong:
            raise Broken(f"it multiplies wrongly: {wrong} numbers of {PRODUCTS} products changed", "arithmetic")

    def _multiply(self, product: ctypes.c_uint64) -> None:
        blocks = (SIZE * SIZE + THREADS - 1) // THREADS
        self._context.launch("multiply", blocks, *self._inputs, product, ctypes.c_uint(SIZE))

    def _try_tensor(self) -> None:
        self._say(at="tensor cores")
        self._clear()
        times, blocks = ctypes.c_uint(TENSOR_TIMES), self._context.blocks // 2
        for _ in range(TENSORS):
            took = self._context.seconds(lambda: self._context.launch("tensor", blocks, self._result, times))
            self._keep(teraflops=TENSOR_FLOPS * blocks * THREADS / 32 / took / 1e12)
        wrong = self._wrong()
        if wrong:
            raise Broken(f"its tensor cores multiply wrongly: {wrong} threads had another sum", "arithmetic")

    def _keep(self, **figures: float) -> None:
        self._best.update({name: max(value, self._best.get(name, 0.0)) for name, value in figures.items()})

    def _clear(self) -> None:
        self._context.write(self._result, array("Q", (0, 0, 2**64 - 1)).tobytes(), 24)

    def _wrong(self) -> int:
        self._context.wait()
        return array("Q", self._context.read(self._result, 24))[0]


@cache
def _matrices() -> tuple["array[float]", "array[float]", "array[float]"]:
    """Two matrices and their product.

    The second is a column times a row, so that the product takes as many steps as it has numbers; all sums are whole
    numbers below 2**24, which a float holds exactly, in whatever order they are added up. A row of the first one goes
    through the numbers below 251 in steps of 3, each row from another one.
    """
    down = array("f", (number % 5 + 1 for number in range(SIZE)))
    across = array("f", (number % 4 + 1 for number in range(SIZE)))
    steps = array("f", (3 * number % 251 for number in range(251 + SIZE)))
    left, right, product = array("f"), array("f"), array("f")
    for row in range(SIZE):
        start = 7 * row * 84 % 251  # 3 * 84 = 252: the step at which 7 * row comes up
        numbers = steps[start : start + SIZE]
        total = sum(map(float.__mul__, numbers, down))
        left.extend(numbers)
        right.extend(_scaled(down[row], across))
        product.extend(_scaled(total, across))
    return left, right, product


def _scaled(factor: float, across: "array[float]") -> "array[float]":
    """`across`, which goes on as it begins, times a factor."""
    return array("f", (factor * number for number in across[:4])) * (SIZE // 4)
