"""Pages of datasets: they translate HTTP and call a service."""
