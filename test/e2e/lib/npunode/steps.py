"""Small helpers the rest of the package shares: commands, waiting, errors."""

import subprocess
import time


class NodeError(Exception):
    """Something that stops the node or a test; the message says what and where to look."""


def run(*command, stdin=None):
    """Runs a command that has to succeed and returns its standard output."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise NodeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def wait_for(what, condition, seconds=60.0, poll=0.05, explain=None):
    """Polls until condition() is true and returns its value; NodeError after the deadline.

    explain() may add to the message what was seen instead."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            detail = f"\n{explain()}" if explain else ""
            raise NodeError(f"not within {seconds:g} s: {what}{detail}")
        time.sleep(poll)


def tail(path, lines=25):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError as error:
        return f"({error})"
