//! The machine: differentiable ops on dfdx tensors, one folder per op, one file per device. Imports nothing else of ours.
