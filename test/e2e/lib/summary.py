"""Adds up the result files of run.sh in one line; exit 1 unless all passed."""

import glob
import os
import sys
import xml.etree.ElementTree


def main(folder):
    total = failed = skipped = 0
    for path in glob.glob(f"{folder}/*.xml"):
        for suite in xml.etree.ElementTree.parse(path).iter("testsuite"):
            total += int(suite.get("tests"))
            failed += int(suite.get("failures")) + int(suite.get("errors"))
            skipped += int(suite.get("skipped"))
    if os.path.exists(f"{folder}/not-run"):
        with open(f"{folder}/not-run") as file:
            nodes = file.read().split()
        print("nodes that did not come up: " + " ".join(nodes))
        failed, total = failed + len(nodes), total + len(nodes)
    print(f"e2e: {max(total - failed - skipped, 0)} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not total or os.path.exists(f"{folder}/failed") else 0


sys.exit(main(sys.argv[1]))
