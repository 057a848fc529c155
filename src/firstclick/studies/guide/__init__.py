"""Every policy in every world, stock or made of data: what the guide "which one should I use" stands on."""
