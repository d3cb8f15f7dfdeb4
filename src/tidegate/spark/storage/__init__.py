"""Folders that the driver and all workers reach: on disks, in object stores, in HDFS."""
