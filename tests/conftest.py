"""What holds for every test: a slow machine is no reason to fail one that draws its cases at random.

Whatever is trusted is trusted in a state folder that goes with the tests, never in the user's own. Compiled modules are
kept even where the environment forbids it: hundreds of tests start a process, and each would compile AOF once more.
Temporary folders lie in memory where there is enough of it: thousands of tests make a data directory, and a disk spends
more time on its files than the test does on its question. TMPDIR says otherwise.
"""

import atexit
import os
import shutil
import sys
import tempfile

from hypothesis import HealthCheck, settings

_MEMORY, _ENOUGH = "/dev/shm", 2 << 30  # containers often have 64 MB there

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH:
    os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="aof-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
