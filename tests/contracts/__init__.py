"""What every implementation of a port must do, written once and run over all of them."""
