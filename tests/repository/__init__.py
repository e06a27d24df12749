"""What the files of this repository say of themselves and of each other."""
