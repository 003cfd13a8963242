"""What a user can write in a ResourceClaim."""

import pytest

from objects import DRIVER, FOREVER, LIST_CHIPS, claim, container, on_chip, pod, request, template

FIRST_CONTAINER = "first container that opens it"


@pytest.mark.smoke
def test_template_with_selector_on_model_and_memory(cluster, ns):
    """Init container, then container: the same chip for both."""
    device = next(iter(cluster.devices().values()))
    model = device["attributes"]["model"]["string"]
    selector = (f'device.attributes["{DRIVER}"].?model.orValue("") == "{model}" && '
                f'device.capacity["{DRIVER}"].memory.compareTo(quantity("32Gi")) >= 0')
    ns.create(template("chip", request(selectors=[selector])),
              pod("selected", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "chip"},
                  initContainers=[container(LIST_CHIPS, name="init", claims=["npu"])]))
    ns.wait_pod("selected", "Succeeded")
    chips = ns.logs("selected").split()
    assert len(chips) == 1
    assert ns.logs("selected", "init").split() == chips


def test_selector_nothing_matches(ns):
    selector = f'device.attributes["{DRIVER}"].?model.orValue("") == "no-such-model"'
    ns.create(template("chip", request(selectors=[selector])),
              pod("unmatched", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    assert "cannot allocate all claims" in ns.wait_message("unmatched", "FailedScheduling")


def test_each_container_gets_its_request_only(ns):
    script = f"{LIST_CHIPS}; {FOREVER}"
    ns.create(template("two", request("left"), request("right")),
              pod("apart", container(script, name="a", claims=[("npu", "left")]),
                  container(script, name="b", claims=[("npu", "right")]), claims={"npu": "two"}))
    ns.wait_pod("apart")
    a, b = (ns.logs("apart", name).split() for name in "ab")
    assert len(a) == len(b) == 1 and a != b, f"container a sees {a}, b sees {b}"
    assert FIRST_CONTAINER not in ns.messages("apart")


def test_two_requests_in_one_container(ns):
    ns.create(template("two", request("left"), request("right")),
              pod("both", container(f"{LIST_CHIPS}; env", claims=["npu"]), claims={"npu": "two"}))
    ns.wait_pod("both", "Succeeded")
    lines = ns.logs("both").splitlines()
    chips = [line for line in lines if line.startswith("davinci")]
    ids = {line.partition("=")[2] for line in lines if line.startswith("ASCEND_DRA_NPU_") and "_PHYSICAL_ID=" in line}
    assert len(chips) == 2
    assert {f"davinci{number}" for number in ids} == set(chips)


def test_first_available(ns):
    none = {"name": "none", "deviceClassName": DRIVER, "selectors": [
        {"cel": {"expression": f'device.attributes["{DRIVER}"].?model.orValue("") == "no-such-model"'}}]}
    either = {"name": "npu", "firstAvailable": [none, {"name": "any", "deviceClassName": DRIVER}]}
    chips = ns.run_pod(template("either", either),
                       pod("first", container(LIST_CHIPS, claims=[("npu", "npu")]), claims={"npu": "either"})).split()
    assert len(chips) == 1


def test_allocation_mode_all(cluster, ns):
    chips = ns.run_pod(template("all", request(allocationMode="All")),
                       pod("all", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "all"})).split()
    assert len(chips) == len(cluster.devices()) == 8


def test_admin_access_beside_a_holder(cluster):
    namespace = cluster.namespace("admin-access", {"resource.kubernetes.io/admin-access": "true"})
    try:
        namespace.create(template("chip"), template("admin", request(allocationMode="All", adminAccess=True)),
                         pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
        namespace.wait_pod("holder")
        namespace.create(pod("monitor", container(FOREVER, claims=["npu"]), claims={"npu": "admin"}))
        monitor = namespace.wait_pod("monitor")
        name = monitor["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        results = namespace.claim(name)["status"]["allocation"]["devices"]["results"]
        assert len(results) == 8 and all(result["adminAccess"] for result in results)
        namespace.delete_pod("monitor")
        holder = namespace.pod("holder")["status"]["containerStatuses"][0]
        assert holder["restartCount"] == 0 and holder["ready"]
    finally:
        namespace.close()


@pytest.mark.smoke
def test_claim_shared_by_two_containers_warns(ns):
    script = f"{LIST_CHIPS}; {FOREVER}"
    ns.create(claim("shared"),
              pod("sharing", container(script, name="a", claims=["npu"]), container(script, name="b", claims=["npu"]),
                  claims={"npu": "claim/shared"}))
    ns.wait_pod("sharing")
    assert ns.logs("sharing", "a") == ns.logs("sharing", "b") != ""
    ns.wait_message("sharing", "Warning", FIRST_CONTAINER)


def test_claim_shared_by_two_pods_warns(ns):
    script = f"{LIST_CHIPS}; {FOREVER}"
    ns.create(claim("shared"), pod("one", container(script, claims=["npu"]), claims={"npu": "claim/shared"}))
    ns.wait_pod("one")
    ns.create(pod("two", container(script, claims=["npu"]), claims={"npu": "claim/shared"}))
    ns.wait_pod("two")
    assert ns.logs("one") == ns.logs("two") != ""
    ns.wait_message("two", "Warning", FIRST_CONTAINER)
    ns.delete_pod("one")
    assert ns.exec("two", LIST_CHIPS) == ns.logs("two")


def test_claim_outlives_its_pod(ns):
    """A claim of the user keeps its chip from one pod to the next."""
    ns.create(claim("kept", request(selectors=[on_chip(5)])))
    for name in ("first", "second"):
        chips = ns.run_pod(pod(name, container(LIST_CHIPS, claims=["npu"]), claims={"npu": "claim/kept"})).split()
        assert chips == ["davinci5"]
        ns.delete_pod(name)
