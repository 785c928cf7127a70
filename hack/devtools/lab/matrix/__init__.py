"""What frameworks do when processes of a job fail, seen in real pods: ``make matrix`` writes benchmarks/matrix.csv."""
