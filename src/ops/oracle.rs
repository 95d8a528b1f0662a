//! Runs the CPU on the plain definitions instead of its kernels: the whole model then computes as a device without kernels does.
//! For tests, and for asking whether a kernel is to blame.

use std::cell::Cell;

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// Every op called by `f` on this thread is its definition. Backward must run inside `f` too.
pub fn with_definitions<R>(f: impl FnOnce() -> R) -> R {
    struct Off(bool);
    impl Drop for Off {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _off = Off(ON.replace(true));
    f()
}

pub(super) fn on() -> bool {
    ON.get()
}
