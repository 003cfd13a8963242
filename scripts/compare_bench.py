"""Prints the CDI library's times beside those of the Go library and of what the machine can do.

compare_bench.py GOOGLE_BENCHMARK.json GO.jsonl
"""
import json
import sys

# Name in both programs -> what it is.
TOGETHER = {
    "parse_memory": "parse and validate a claim file, in memory",
    "parse_file": "the same from a file",
    "scan": "scan of 1,000 files",
    "refresh": "scan again, one file changed",
    "inject": "inject 8 devices into a parsed configuration",
    "inject_json": "the same from text to text",
}
# Our own -> the limit measured in the same run.
LIMITED = {
    "write_tmpfs": ("write a file, tmpfs", "raw_write_rename_tmpfs"),
    "write_disk": ("write a file, disk, not synced", "raw_write_rename_disk"),
    "write_disk_durable": ("write a file, disk, synced", "raw_write_fsync_rename_fsync_disk"),
}
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def text(nanoseconds):
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    ours = {}
    for run in json.load(open(sys.argv[1], encoding="utf-8"))["benchmarks"]:
        ours[run["name"].split("/")[0]] = run["real_time"] * NANOSECONDS[run["time_unit"]]
    theirs = {}
    for line in open(sys.argv[2], encoding="utf-8"):
        run = json.loads(line)
        theirs[run["name"]] = run["ns_per_op"]
    rows = [["CDI LIBRARY", "C++", "GO v1.1.2", "RATIO"]]
    for name, what in TOGETHER.items():
        rows.append([what, text(ours[name]), text(theirs[name]), f"{theirs[name] / ours[name]:.1f}x"])
    print_table(rows)
    print()
    rows = [["CDI LIBRARY", "C++", "SYSTEM CALLS ALONE"]]
    for name, (what, limit) in LIMITED.items():
        rows.append([what, text(ours[name]), text(ours[limit])])
    print_table(rows)
    print("\nbench: ok")


if __name__ == "__main__":
    main()
