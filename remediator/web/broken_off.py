"""What a request that broke off leaves behind: no body.

The exception that ends it has the frames that it went through, with the body in them, and stands itself in one of
them: in the future or the stream that raised it. Only Python's collector takes such a cycle, within seconds or once
a day (remediator/collector.py). Until then each caller that goes away in the middle would cost as much as it has sent.
"""

import gc
from traceback import walk_tb
from types import FrameType

from aiohttp import web
from aiohttp.typedefs import Handler


@web.middleware
async def forget_broken_off(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let go of what the frames hold that an exception has left."""
    try:
        return await handler(request)
    except BaseException as error:
        for frame, _ in walk_tb(error.__traceback__):
            if _over(frame):
                frame.clear()
        cause = error.__context__
        while cause is not None:  # others may share it, and wait in its frames: they are let go, not cleared
            cause.__traceback__, cause = None, cause.__context__
        raise


def _over(frame: FrameType) -> bool:
    """Whether what ran in it has ended: then it holds its variables and its code itself, as the collector sees.

    An exception that several await has frames of all of them. To clear one that still waits would end what waits.
    """
    return any(held is frame.f_code for held in gc.get_referents(frame))
