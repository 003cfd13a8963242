"""Kubernetes objects of the cases, with only what a case says differing from the defaults."""

import os

DRIVER = "npu.huawei.com"
# What a container sees of its chips and of the driver.
LIST_CHIPS = "cd /dev && ls -d davinci[0-9]* 2>/dev/null || true"
FOREVER = "exec sleep 100000"


def container(script, name="main", claims=(), **fields):
    """Claims are names of pod claims, or (name, request)."""
    result = {"name": name, "image": os.environ["E2E_IMAGE"], "imagePullPolicy": "Never",
              "command": ["sh", "-c", script], **fields}
    if claims:
        entries = [claim if isinstance(claim, tuple) else (claim, None) for claim in claims]
        result["resources"] = {"claims": [{"name": name, **({"request": request} if request else {})}
                                          for name, request in entries]}
    return result


def pod(name, *containers, claims=None, **spec):
    """claims: name of the pod claim -> name of the template, or of the claim when it starts with "claim/"."""
    entries = []
    for entry, source in (claims or {}).items():
        key = "resourceClaimName" if source.startswith("claim/") else "resourceClaimTemplateName"
        entries.append({"name": entry, key: source.removeprefix("claim/")})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "dnsPolicy": "Default",
                     "automountServiceAccountToken": False, "containers": list(containers),
                     **({"resourceClaims": entries} if entries else {}), **spec}}


def request(name="npu", **exactly):
    """One request of a claim: count, selectors as CEL strings, allocationMode, adminAccess."""
    if "selectors" in exactly:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in exactly["selectors"]]
    return {"name": name, "exactly": {"deviceClassName": DRIVER, **exactly}}


def _spec(requests, config):
    devices = {"requests": list(requests) or [request()]}
    if config:
        devices["config"] = [{"opaque": {"driver": DRIVER, "parameters": config}}]
    return {"devices": devices}


def claim(name, *requests, config=None):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": _spec(requests, config)}


def template(name, *requests, config=None):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": _spec(requests, config)}}


def on_chip(physical_id):
    """A CEL selector for one chip."""
    return f'device.attributes["{DRIVER}"].?physicalID.orValue(-1) == {physical_id}'
