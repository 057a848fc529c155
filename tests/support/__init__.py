"""What tests share: one shop, the doors to it, slow references."""
