"""What holds for every test: a slow machine is no reason to fail one that draws its cases at random.

Whatever is trusted is trusted in a state folder that goes with the tests, never in the user's own.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="aof-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
