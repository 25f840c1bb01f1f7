"""The loop of a worker that ``live_worker.py`` asks, in the environment of a framework."""

from __future__ import annotations

import json
import os
import sys


def serve(hello, commands, shown=str):
    """Answer one request a line on standard input by one reply a line on standard output.

    Both are JSON; ``hello`` comes first. What a framework prints goes to standard error. An error
    becomes a reply, as ``shown`` spells it.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(hello), file=out, flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            reply = {"value": commands[name](*arguments)}
        except Exception as error:
            reply = {"error": shown(error).strip()[-2000:]}
        print(json.dumps(reply), file=out, flush=True)
