//! What the CPU kernels share: slices of dfdx tensors, matrix product, loops over rows whose results do not depend on the
//! number of threads, vector arithmetic.

pub mod gemm;
pub mod heap;
pub mod math;
pub mod rows;
pub mod view;
