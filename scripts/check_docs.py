"""Checks the documentation: every relative link leads to a file, the Chinese README shows the same
commands as the English one, cdi/README.md shows the example that the tests build, docs/cdi.md names
every accepted difference, and docs/field-failures.md names tests that exist."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(?:sh|shell|bash|console|yaml)\n(.*?)^```$", re.M | re.S)


def markdown_files():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines()]


def broken_links(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        if not (path.parent / target.split("#")[0]).exists():
            yield f"{path.relative_to(ROOT)}: link to {target} leads nowhere"


def code_blocks(name):
    """Blocks of commands and manifests without comments, which are translated."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [re.sub(r"\s*(^|\s)#.*$", "", block, flags=re.M).strip() for block in FENCE.findall(text)]


def shows(document, language, source):
    """Whether the document has a block in this language with exactly the source file's text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.M | re.S)
    return (ROOT / source).read_text(encoding="utf-8") in blocks


def tests_that_do_not_exist():
    """Names in docs/field-failures.md of tests that nobody wrote."""
    files = subprocess.run(["git", "ls-files", "*_test.cc", "test/e2e/cases/*.py"], cwd=ROOT, capture_output=True,
                           text=True, check=True).stdout.splitlines()
    source = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    tests = {".".join(pair) for pair in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", source, re.M)}
    tests |= set(re.findall(r"^def (test_\w+)", source, re.M))
    table = (ROOT / "docs/field-failures.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+Test\.\w+|test_\w+)`", table)
    return [f"docs/field-failures.md: there is no test {name}" for name in named if name not in tests]


def main():
    problems = [problem for path in markdown_files() for problem in broken_links(path)]
    if code_blocks("README.md") != code_blocks("README.zh-CN.md"):
        problems.append("README.md and README.zh-CN.md show different commands or manifests")
    for language, source in (("cpp", "cdi/example/main.cc"), ("cmake", "cdi/example/CMakeLists.txt")):
        if not shows("cdi/README.md", language, source):
            problems.append(f"cdi/README.md does not show {source} as it is")
    explained = (ROOT / "docs/cdi.md").read_text(encoding="utf-8")
    for difference in json.loads((ROOT / "test/cdi/differences.json").read_text(encoding="utf-8")):
        if f"`{difference['cause']}`" not in explained:
            problems.append(f"docs/cdi.md does not explain the difference {difference['cause']}")
    problems += tests_that_do_not_exist()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
