//! The right matrix of a product, in the order in which tiles read it.
#![allow(unsafe_code)]

use super::super::amx::Split;
use super::super::kernel::most_vectors;
use super::super::level::{Level, level};
use super::super::pool;
use super::super::transpose::transpose;
use super::tiles::{Pointer, cuts};
use super::{View, Workers};

/// Rows of a right matrix that are packed together, panel after panel.
const PACKED_ROWS: usize = 16;
/// Rows of the right matrix this close together are used where they are.
const USE_IN_PLACE_TO_STRIDE: usize = 64;

/// Right matrices of at least this size are multiplied on AMX tiles, where there are some; cutting the numbers of smaller ones takes
/// as long as it saves. Tests draw the line lower.
const SPLIT_FROM_INNER: usize = if cfg!(test) { 24 } else { 128 };
const SPLIT_FROM_COLS: usize = if cfg!(test) { 16 } else { 128 };

/// Registers in the panel that starts `done` registers from the left: threes where they come out even, because tiles of three
/// registers keep the arithmetic units busiest, with twos or fours for the rest.
fn panel_vectors(level: Level, left: usize) -> usize {
    match level {
        Level::Avx2 => left.min(2),
        _ => match left {
            1..=4 => left,
            5 => 3,
            _ if left.is_multiple_of(3) => 3,
            _ => most_vectors(level),
        },
    }
}

/// A right matrix, ready for tiles: panels of a few registers' columns, each contiguous.
pub struct Packed<'a> {
    pub(super) numbers: Numbers<'a>,
    pub(super) inner: usize,
    /// Rows of a panel in memory, of which `inner` are used from `first` on.
    panel_rows: usize,
    first: usize,
    pub(super) cols: usize,
    pub(super) level: Level,
}

pub(super) enum Numbers<'a> {
    /// Panels one after another, the last one filled up with zeros.
    Panels(Vec<f32>),
    Borrowed(&'a [f32]),
    InPlace {
        data: &'a [f32],
        stride: usize,
    },
    /// Parts of numbers for AMX.
    Split(Split),
}

impl<'a> Packed<'a> {
    pub fn new(b: View<'a>, workers: Workers) -> Self {
        if splits(b) { Self::split(b, workers) } else { Self::vectors(b, workers) }
    }

    /// [`Packed::new`] with nothing borrowed.
    pub fn kept(b: View, workers: Workers) -> Packed<'static> {
        if splits(b) { Packed::split(b, workers) } else { Packed::in_panels(b, workers) }
    }

    fn split(b: View, workers: Workers) -> Packed<'static> {
        b.assert_inside();
        let numbers = Numbers::Split(Split::new(b, workers == Workers::All && b.rows * b.cols >= 1 << 16));
        Packed { numbers, inner: b.rows, panel_rows: b.rows, first: 0, cols: b.cols, level: level().vectors() }
    }

    /// For vector registers, whatever else there is.
    pub fn vectors(b: View<'a>, workers: Workers) -> Self {
        if b.row_stride <= USE_IN_PLACE_TO_STRIDE && Self::fills_registers(b) {
            Self::in_place(b)
        } else {
            Self::in_panels(b, workers)
        }
    }

    /// A copy for vector registers, which outlives the numbers.
    fn in_panels(b: View, workers: Workers) -> Packed<'static> {
        b.assert_inside();
        let (inner, cols, level) = (b.rows, b.cols, level().vectors());
        let lanes = level.lanes();
        let padded = cols.next_multiple_of(lanes);
        let mut numbers: Vec<f32> = Vec::with_capacity(padded * inner);
        let start = Pointer(numbers.as_mut_ptr());
        // SAFETY (both): panel p covers [first * inner, (first + width) * inner) of the padded * inner numbers just allocated, and its
        // rows lie one after another, so that no two tasks write to one number; `pack_panel` writes all of its rows, and reads b
        // inside what `assert_inside` has checked.
        let by_panel = |(first, vectors): (usize, usize)| unsafe {
            pack_panel(b, first, vectors * lanes, start.get().add(first * inner));
        };
        // A few rows at a time, as they lie in memory.
        let by_rows = |(from, to): (usize, usize)| {
            for (first, vectors) in panels(level, cols) {
                let width = vectors * lanes;
                unsafe { pack_panel(b.rows(from, to), first, width, start.get().add(first * inner + from * width)) };
            }
        };
        let all = workers == Workers::All && padded * inner >= 1 << 16;
        match (b.col_stride == 1, all) {
            (true, true) => pool::each(cuts(inner, inner.div_ceil(PACKED_ROWS)).collect(), by_rows),
            (true, false) => cuts(inner, inner.div_ceil(PACKED_ROWS)).for_each(by_rows),
            (false, true) => pool::each(panels(level, cols).collect(), by_panel),
            (false, false) => panels(level, cols).for_each(by_panel),
        }
        // SAFETY: the panels have written every number.
        unsafe { numbers.set_len(padded * inner) };
        Packed { numbers: Numbers::Panels(numbers), inner, panel_rows: inner, first: 0, cols, level }
    }

    /// Whether rows are contiguous and a whole number of registers.
    pub fn fills_registers(b: View) -> bool {
        b.col_stride == 1 && b.cols.is_multiple_of(level().vectors().lanes())
    }

    /// Row-major numbers as they lie. Columns fill whole registers, rows should be close together.
    pub fn in_place(b: View<'a>) -> Self {
        b.assert_inside();
        let level = level().vectors();
        assert!(Self::fills_registers(b), "matmul: rows are whole registers");
        Self {
            numbers: Numbers::InPlace { data: b.data, stride: b.row_stride },
            inner: b.rows,
            panel_rows: b.rows,
            first: 0,
            cols: b.cols,
            level,
        }
    }

    /// A narrow matrix packed on this thread, wherever its rows lie.
    pub fn copy(b: View<'a>) -> Self {
        Self::vectors(b, Workers::One)
    }

    /// Only the rows first..end.
    pub fn rows(&self, first: usize, end: usize) -> Packed<'_> {
        assert!(first <= end && end <= self.inner, "matmul: no more rows than there are");
        let numbers = match &self.numbers {
            Numbers::Panels(numbers) => Numbers::Borrowed(numbers),
            Numbers::Borrowed(numbers) => Numbers::Borrowed(numbers),
            Numbers::InPlace { data, stride } => Numbers::InPlace { data, stride: *stride },
            Numbers::Split(_) => unreachable!("only panels are used in part"),
        };
        Packed { numbers, inner: end - first, first: self.first + first, ..*self }
    }

    /// Where the panel starts whose first column is `first`, and how far apart its rows are.
    pub(super) fn panel(&self, column: usize, vectors: usize) -> (*const f32, usize) {
        let width = vectors * self.level.lanes();
        let at = column * self.panel_rows + self.first * width;
        match &self.numbers {
            Numbers::Panels(numbers) => (numbers[at..].as_ptr(), width),
            Numbers::Borrowed(numbers) => (numbers[at..].as_ptr(), width),
            Numbers::InPlace { data, stride } => (data[self.first * stride + column..].as_ptr(), *stride),
            Numbers::Split(_) => unreachable!("split numbers have no panels"),
        }
    }

    /// The numbers of a panel between two inner indices, if they lie together.
    pub(super) fn piece(&self, (column, vectors): (usize, usize), span: (usize, usize)) -> &[f32] {
        let width = vectors * self.level.lanes();
        let at = column * self.panel_rows + (self.first + span.0) * width;
        match &self.numbers {
            Numbers::Panels(numbers) => &numbers[at..][..(span.1 - span.0) * width],
            Numbers::Borrowed(numbers) => &numbers[at..][..(span.1 - span.0) * width],
            Numbers::InPlace { .. } | Numbers::Split(_) => &[],
        }
    }
}

/// Whether a right matrix is multiplied on AMX tiles.
fn splits(b: View) -> bool {
    level() == Level::Amx && b.rows >= SPLIT_FROM_INNER && b.cols >= SPLIT_FROM_COLS
}

/// (first column, registers) of every panel.
pub(super) fn panels(level: Level, cols: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let lanes = level.lanes();
    let total = cols.div_ceil(lanes);
    let mut done = 0;
    std::iter::from_fn(move || {
        let first = done;
        (first < total).then(|| {
            let vectors = panel_vectors(level, total - first);
            done += vectors;
            (first * lanes, vectors)
        })
    })
}

/// Columns first.. of b, `width` of them or as many as there are and then zeros, row by row.
///
/// # Safety
/// b ends inside its slice, and `out` has room for b.rows * width numbers.
unsafe fn pack_panel(b: View, first: usize, width: usize, out: *mut f32) {
    let cols = width.min(b.cols - first);
    // SAFETY: indices into b stay below (rows - 1) * row_stride + (cols - 1) * col_stride; those into out below rows * width.
    unsafe {
        let source = b.data.as_ptr().add(first * b.col_stride);
        if b.col_stride == 1 {
            match (cols == width, width) {
                (true, 48) => copy_rows::<48>(source, b.row_stride, b.rows, out),
                (true, 64) => copy_rows::<64>(source, b.row_stride, b.rows, out),
                _ => {
                    for k in 0..b.rows {
                        let (from, to) = (source.add(k * b.row_stride), out.add(k * width));
                        std::ptr::copy_nonoverlapping(from, to, cols);
                        std::ptr::write_bytes(to.add(cols), 0, width - cols);
                    }
                }
            }
            return;
        }
        assert_eq!(b.row_stride, 1, "matmul: rows or columns of the right matrix are contiguous");
        transpose(source, b.col_stride, cols, b.rows, out, width);
        for k in 0..b.rows {
            std::ptr::write_bytes(out.add(k * width + cols), 0, width - cols);
        }
    }
}

/// Rows of a known width: moves instead of a call for each.
///
/// # Safety
/// Source and target lie inside their allocations.
unsafe fn copy_rows<const WIDTH: usize>(from: *const f32, stride: usize, rows: usize, to: *mut f32) {
    for k in 0..rows {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.add(k * stride), to.add(k * WIDTH), WIDTH) };
    }
}
