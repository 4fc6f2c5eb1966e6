"""What a request that broke off leaves behind: no body.

The exception that ends it has the frames that it went through, with the body in them, and stands itself in one of
them: in the future or the stream that raised it. Only Python's collector takes such a cycle, within seconds or once
a day (remediator/collector.py). Until then each caller that goes away in the middle would cost as much as it has sent.
"""

import traceback

from aiohttp import web
from aiohttp.typedefs import Handler


@web.middleware
async def forget_broken_off(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let go of what the frames hold that an exception has left."""
    try:
        return await handler(request)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        cause = error.__context__
        while cause is not None:  # others may share it, and wait in its frames: they are let go, not cleared
            cause.__traceback__, cause = None, cause.__context__
        raise
