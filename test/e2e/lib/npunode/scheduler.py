"""The scheduler's own numbers, and its restart."""

import json
import os
import re
import ssl
import urllib.error
import urllib.request

from npunode.steps import wait_for

_LINE = re.compile(r'^(\w+)\{(.*)\} (\S+)$')


class Scheduler:
    def __init__(self, cluster):
        self._services = cluster.services
        with open(cluster.node.kubeconfig) as file:
            user = json.load(file)["users"][0]["user"]
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # it makes its own certificate at every start
        self._context.load_cert_chain(user["client-certificate"], user["client-key"])

    def attempts(self):
        """Result ("scheduled", "unschedulable", "error") -> (number of attempts, their seconds)."""
        sums = {}
        for name, labels, value in self._metrics():
            for place, suffix in enumerate(("count", "sum")):
                if name == f"scheduler_scheduling_attempt_duration_seconds_{suffix}":
                    result = re.search(r'result="(\w+)"', labels)[1]
                    sums.setdefault(result, [0, 0.0])[place] += float(value)
        return {result: tuple(values) for result, values in sums.items()}

    def scheduled(self):
        """Attempts that ended in a bound pod; 0 while the scheduler is not up."""
        try:
            return self.attempts().get("scheduled", (0,))[0]
        except urllib.error.URLError:
            return 0

    def cpu_seconds(self):
        """What the process has used: hardly depends on what else runs on the machine."""
        with open(f"/proc/{self._services.pid('kube-scheduler')}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self._services.stop("kube-scheduler")

    def start(self):
        self._services.restart("kube-scheduler")

    def wait_attempt(self, before):
        """Waits for the end of an attempt after attempts() gave `before`: (result, mean seconds). A scheduled pod's
        includes its binding."""
        def ended():
            for result, (count, seconds) in self.attempts().items():
                old_count, old_seconds = before.get(result, (0, 0.0))
                if count > old_count:
                    return result, (seconds - old_seconds) / (count - old_count)
            return None
        return wait_for("an attempt of the scheduler", ended, seconds=60, poll=0.02)

    def _metrics(self):
        with urllib.request.urlopen("https://127.0.0.1:10259/metrics", context=self._context, timeout=30) as answer:
            text = answer.read().decode()
        return [match.groups() for match in map(_LINE.match, text.splitlines()) if match]
