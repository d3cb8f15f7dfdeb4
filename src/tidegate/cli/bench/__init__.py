"""`tidegate bench`: how fast is Tidegate on this machine?"""

from tidegate.cli.bench.command import bench

__all__ = ["bench"]
