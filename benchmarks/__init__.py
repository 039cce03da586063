"""The benchmarks: Foreword beside its peers on one workload, and what each part of it costs. `make bench` runs them."""
