"""What these tests share: folders for data directories."""

from tests.support.directories import quick, root, shm_path

__all__ = ["quick", "root", "shm_path"]
