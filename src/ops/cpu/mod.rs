//! What the CPU kernels share: slices of dfdx tensors, matrix product, loops over rows whose results do not depend on the
//! number of threads, vector arithmetic.

pub mod amx;
pub mod clock;
pub mod gemm;
pub mod heap;
pub mod kernel;
pub mod level;
pub mod math;
pub mod pool;
pub mod rows;
pub mod scratch;
pub mod shared;
pub mod transpose;
pub mod view;
