//! Picks the device and the threads of a run.

use super::config::DeviceChoice;
use crate::ops::cpu::heap;
pub use crate::ops::cpu::level::{Level, level};

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("`device: cuda` was asked for, but this build has no CUDA; build with `cargo build --release --features cuda`")]
    NoCuda,
    #[error("no CUDA device could be opened: {what}; set `device: cpu`")]
    CudaUnavailable { what: String },
    #[error("{threads} threads could not be started")]
    Threads {
        threads: usize,
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
}

/// The device a run gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    Cpu,
    Cuda,
}

pub fn choose(choice: DeviceChoice) -> Result<DeviceKind, DeviceError> {
    match choice {
        DeviceChoice::Cpu => Ok(DeviceKind::Cpu),
        DeviceChoice::Cuda if cfg!(feature = "cuda") => Ok(DeviceKind::Cuda),
        DeviceChoice::Cuda => Err(DeviceError::NoCuda),
        DeviceChoice::Auto if cfg!(feature = "cuda") => Ok(DeviceKind::Cuda),
        DeviceChoice::Auto => Ok(DeviceKind::Cpu),
    }
}

/// Runs `f` with this many threads for every kernel called inside it; absent: one per core.
pub fn with_threads<R: Send>(threads: Option<usize>, f: impl FnOnce() -> R + Send) -> Result<R, DeviceError> {
    heap::keep_freed_memory();
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|cause| DeviceError::Threads { threads, cause })?;
    Ok(pool.install(f))
}

/// Evaluates `$body` with `$dev` bound to the device of this kind.
#[macro_export]
macro_rules! on_device {
    ($kind:expr, $dev:ident => $body:expr) => {
        match $kind {
            $crate::paper::device::DeviceKind::Cpu => {
                let $dev = dfdx::prelude::Cpu::default();
                $body
            }
            #[cfg(feature = "cuda")]
            $crate::paper::device::DeviceKind::Cuda => {
                let $dev = $crate::paper::device::open_cuda()?;
                $body
            }
            #[cfg(not(feature = "cuda"))]
            $crate::paper::device::DeviceKind::Cuda => Err($crate::paper::device::DeviceError::NoCuda.into()),
        }
    };
}

#[cfg(feature = "cuda")]
pub fn open_cuda() -> Result<dfdx::prelude::Cuda, DeviceError> {
    // CudaDevice::new panics without a driver; this call reports it.
    cudarc::driver::result::init().map_err(|e| DeviceError::CudaUnavailable { what: format!("{e:?}") })?;
    dfdx::prelude::Cuda::try_build(0, 0).map_err(|e| DeviceError::CudaUnavailable { what: format!("{e:?}") })
}
