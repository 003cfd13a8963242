"""The driver on the node: its image, its mock NPUs, its deployment."""

import os

REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../.."))
DEFAULT_BUILD = os.path.join(REPOSITORY, "build")
