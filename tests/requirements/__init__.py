"""What AOF must do, as data (`catalogue/`), and the check that tests and data agree."""
