"""What holds for every test: a slow machine is no reason to fail one that draws its cases at random.

Whatever is trusted is trusted in a state folder that goes with the tests, never in the user's own. Compiled modules are
kept even where the environment forbids it: hundreds of tests start a process, and each would compile AOF once more.
"""

import atexit
import os
import shutil
import sys
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="aof-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
