#!/usr/bin/env bash
# A real one-node Kubernetes with mock NPUs and the driver; see node.sh --help.
set -euo pipefail

lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib
export PYTHONPATH=$lib PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -m npunode "$@"
