"""What server and clients say to one another: bodies, limits, receipts and refusals."""
