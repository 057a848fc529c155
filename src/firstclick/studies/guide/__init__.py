"""Every policy in every stock world: what the guide "which one should I use" stands on."""
