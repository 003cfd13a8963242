"""The node's long-running programs: started, found again, stopped from any process inside the node."""

import json
import os
import signal
import subprocess

from npunode.steps import NodeError, tail, wait_for


class Services:
    """Programs by name; their command lines are kept in <work>/services, their logs in <work>/logs."""

    def __init__(self, work):
        self._state = os.path.join(work, "services")
        self.logs = os.path.join(work, "logs")
        os.makedirs(self._state, exist_ok=True)
        os.makedirs(self.logs, exist_ok=True)

    def start(self, name, *command, environment=None):
        log = self.log(name)
        with open(log, "a") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       env={**os.environ, **(environment or {})}, start_new_session=True)
        with open(self._file(name), "w") as file:
            json.dump({"pid": process.pid, "command": command, "environment": environment}, file)

    def pid(self, name):
        return self._read(name)["pid"]

    def alive(self, name):
        try:
            with open(f"/proc/{self.pid(name)}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def stop(self, name, signal_number=signal.SIGTERM):
        if self.alive(name):
            os.kill(self.pid(name), signal_number)
            wait_for(f"{name} ended", lambda: not self.alive(name))

    def restart(self, name, signal_number=signal.SIGTERM):
        state = self._read(name)
        self.stop(name, signal_number)
        self.start(name, *state["command"], environment=state["environment"])

    def wait(self, name, what, condition, seconds=60.0):
        """wait_for() that gives up at once, with the tail of the log, when the program ends."""
        def ready():
            if not self.alive(name):
                raise NodeError(f"{name} ended while waiting for: {what}\n{tail(self.log(name))}")
            return condition()
        return wait_for(what, ready, seconds=seconds, explain=lambda: f"tail of {name}:\n{tail(self.log(name))}")

    def log(self, name):
        return os.path.join(self.logs, f"{name}.log")

    def _file(self, name):
        return os.path.join(self._state, f"{name}.json")

    def _read(self, name):
        with open(self._file(name)) as file:
            return json.load(file)
