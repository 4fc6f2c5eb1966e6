"""What may be said of an answer over HTTP that did not come, or that is none."""


def why(error: Exception) -> str:
    """Return an error in words that are ours or the operating system's.

    Those of http.client quote what the other side has sent, which may be what we have sent: a token, a signed URL.
    """
    sort = type(error).__name__
    return f"{sort}: {error}" if isinstance(error, OSError) else f"{sort}: what came is not HTTP, or breaks off"
