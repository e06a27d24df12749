"""Data folders of earlier versions, with an object of every kind, opened by this one."""
