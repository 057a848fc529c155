"""What is measured from a checkout: the speed of policies (`bench`), a server under load (`loadtest`)."""
