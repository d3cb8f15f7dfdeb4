"""The file formats that commands read and write: JSON Lines and Parquet."""
