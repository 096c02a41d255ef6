"""What these tests share: folders for data directories, a person at one, and a log alone."""

from tests.support.desk import desk
from tests.support.directories import quick, root, shm_path
from tests.support.log_bench import bench

__all__ = ["bench", "desk", "quick", "root", "shm_path"]
