"""The outputs that `do NAME ...` and `subscribe ... output NAME ...` can name, one file each."""
