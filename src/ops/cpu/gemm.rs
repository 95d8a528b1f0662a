//! Matrix product on strided slices: packs the right matrix into panels, cuts the output into tiles, hands each to `kernel.rs`.
//!
//! The inner sum runs in blocks of a size that depends on its length only, one after the other; rows and columns may be cut in
//! any way. So threads change no bit, and neither does the number of rows computed together.
#![allow(unsafe_code)]

use super::amx::{self, Split};
use super::kernel::{self, Ahead, Tile, WIDEST, most_rows, most_vectors};
use super::level::{Level, level};
use super::math;
use super::pool;
use super::scratch;
use super::shared::Shared;
use super::transpose::transpose;

/// A matrix inside a slice: element (i, j) at i * row_stride + j * col_stride.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl<'a> View<'a> {
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    pub fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        Self { data, rows, cols, row_stride, col_stride: 1 }
    }

    /// The transpose.
    pub fn t(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// Rows first..end.
    pub fn rows(self, first: usize, end: usize) -> Self {
        Self { data: &self.data[first * self.row_stride..], rows: end - first, ..self }
    }

    /// Columns first..end.
    pub fn cols(self, first: usize, end: usize) -> Self {
        Self { data: &self.data[first * self.col_stride..], cols: end - first, ..self }
    }

    pub(super) fn assert_inside(&self) {
        if self.rows > 0 && self.cols > 0 {
            let last = (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride;
            assert!(last < self.data.len(), "matmul: a view ends inside its slice");
        }
    }
}

/// What a product is added to.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    Nothing,
    /// What the output holds.
    Out,
    /// Another matrix of the output's shape and stride.
    Other(&'a [f32]),
}

/// Who computes: the calling thread, or all threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    One,
    All,
}

impl Workers {
    /// All threads if there are several and the work is worth their waking.
    pub fn for_work(multiply_adds: usize) -> Self {
        if multiply_adds >= PARALLEL_FROM && pool::threads() > 1 { Workers::All } else { Workers::One }
    }
}

/// Below this many multiply-adds a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 18;
/// Longest block of a short inner sum: a panel of it fits the first-level cache.
const INNER_BLOCK: usize = 192;
/// The same of a long one, whose panels come from the second-level cache: the output is read and written less often.
const LONG_INNER_BLOCK: usize = 384;
const LONG: usize = 512;
/// Rows computed together: their part of the left matrix stays in the second-level cache.
const ROW_BLOCK: usize = 256;
/// Numbers of the left matrix that stay in the second-level cache.
const LEFT_BLOCK: usize = 1 << 18;
/// Rows of the left matrix this far apart in memory are copied first: each would be a page of its own.
const COPY_FROM_ROW_STRIDE: usize = 512;
/// The same for its columns, when it is a transpose: they would compete for few places in the cache.
const COPY_FROM_COL_STRIDE: usize = 128;
/// Columns of the output that make the copy worth its time.
const COPY_FROM_COLS: usize = 128;
/// Rows side by side in the copy: a cache line of them, two tiles.
const COPIED_ROWS: usize = math::GROUP;
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
    numbers: Numbers<'a>,
    inner: usize,
    /// Rows of a panel in memory, of which the first `inner` are used.
    panel_rows: usize,
    cols: usize,
    level: Level,
}

enum Numbers<'a> {
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
        if level() == Level::Amx && b.rows >= SPLIT_FROM_INNER && b.cols >= SPLIT_FROM_COLS {
            b.assert_inside();
            let split = Split::new(b, workers == Workers::All && b.rows * b.cols >= 1 << 16);
            return Self {
                numbers: Numbers::Split(split),
                inner: b.rows,
                panel_rows: b.rows,
                cols: b.cols,
                level: level().vectors(),
            };
        }
        Self::vectors(b, workers)
    }

    /// For vector registers, whatever else there is.
    pub fn vectors(b: View<'a>, workers: Workers) -> Self {
        b.assert_inside();
        let (inner, cols, level) = (b.rows, b.cols, level().vectors());
        let lanes = level.lanes();
        if b.row_stride <= USE_IN_PLACE_TO_STRIDE && b.col_stride == 1 && cols.is_multiple_of(lanes) {
            return Self::in_place(b);
        }
        let padded = cols.next_multiple_of(lanes);
        let mut numbers: Vec<f32> = Vec::with_capacity(padded * inner);
        let start = Pointer(numbers.as_mut_ptr());
        // SAFETY: panel p covers [first * inner, (first + width) * inner) of the padded * inner numbers just allocated, which no
        // other panel touches; `pack_panel` writes all of them, and reads b inside what `assert_inside` has checked.
        let pack = |(first, vectors): (usize, usize)| unsafe {
            pack_panel(b, first, vectors * lanes, start.get().add(first * inner));
        };
        if workers == Workers::All && padded * inner >= 1 << 16 {
            pool::each(panels(level, cols).collect(), pack);
        } else {
            panels(level, cols).for_each(pack);
        }
        // SAFETY: the panels have written every number.
        unsafe { numbers.set_len(padded * inner) };
        Self { numbers: Numbers::Panels(numbers), inner, panel_rows: inner, cols, level }
    }

    /// Row-major numbers as they lie. Columns fill whole registers, rows should be close together.
    pub fn in_place(b: View<'a>) -> Self {
        b.assert_inside();
        let level = level().vectors();
        assert!(b.col_stride == 1 && b.cols.is_multiple_of(level.lanes()), "matmul: rows are whole registers");
        Self {
            numbers: Numbers::InPlace { data: b.data, stride: b.row_stride },
            inner: b.rows,
            panel_rows: b.rows,
            cols: b.cols,
            level,
        }
    }

    /// A narrow matrix packed on this thread, wherever its rows lie.
    pub fn copy(b: View<'a>) -> Self {
        Self::vectors(b, Workers::One)
    }

    /// Only the first `inner` rows.
    pub fn first_rows(&self, inner: usize) -> Packed<'_> {
        assert!(inner <= self.inner, "matmul: no more rows than there are");
        let panel_rows = self.panel_rows;
        let numbers = match &self.numbers {
            Numbers::Panels(numbers) => Numbers::Borrowed(numbers),
            Numbers::Borrowed(numbers) => Numbers::Borrowed(numbers),
            Numbers::InPlace { data, stride } => Numbers::InPlace { data, stride: *stride },
            Numbers::Split(_) => unreachable!("only panels are used in part"),
        };
        Packed { numbers, inner, panel_rows, ..*self }
    }

    /// Where the panel starts whose first column is `first`, and how far apart its rows are.
    fn panel(&self, first: usize, vectors: usize) -> (*const f32, usize) {
        match &self.numbers {
            Numbers::Panels(numbers) => (numbers[first * self.panel_rows..].as_ptr(), vectors * self.level.lanes()),
            Numbers::Borrowed(numbers) => (numbers[first * self.panel_rows..].as_ptr(), vectors * self.level.lanes()),
            Numbers::InPlace { data, stride } => (data[first..].as_ptr(), *stride),
            Numbers::Split(_) => unreachable!("split numbers have no panels"),
        }
    }
}

impl Packed<'_> {
    /// The numbers of a panel between two inner indices, if they lie together.
    fn piece(&self, (first, vectors): (usize, usize), span: (usize, usize)) -> &[f32] {
        let width = vectors * self.level.lanes();
        match &self.numbers {
            Numbers::Panels(numbers) => &numbers[first * self.panel_rows + span.0 * width..][..(span.1 - span.0) * width],
            Numbers::Borrowed(numbers) => &numbers[first * self.panel_rows + span.0 * width..][..(span.1 - span.0) * width],
            Numbers::InPlace { .. } | Numbers::Split(_) => &[],
        }
    }
}

/// (first column, registers) of every panel.
fn panels(level: Level, cols: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
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
            for k in 0..b.rows {
                let (from, to) = (source.add(k * b.row_stride), out.add(k * width));
                std::ptr::copy_nonoverlapping(from, to, cols);
                std::ptr::write_bytes(to.add(cols), 0, width - cols);
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

#[derive(Clone, Copy)]
struct Pointer(*mut f32);
// SAFETY: whoever shares a Pointer between threads writes to disjoint elements only.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    fn get(self) -> *mut f32 {
        self.0
    }
}

/// out = start + factor * a b, rows of `out` being `out_stride` apart.
pub fn multiply(out: &mut [f32], out_stride: usize, start: Start, a: View, b: &Packed, factor: f32, workers: Workers) {
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    assert!(b.cols <= out_stride || a.rows == 1, "matmul: rows of the output do not overlap");
    assert!((a.rows - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    if let Start::Other(other) = start {
        assert!((a.rows - 1) * out_stride + b.cols <= other.len(), "matmul: what is added to ends inside its slice");
    }
    check(a, b);
    let started = match start {
        Start::Nothing => std::ptr::null(),
        Start::Out => out.as_ptr(),
        Start::Other(other) => other.as_ptr(),
    };
    // SAFETY: the assertions above bound every address; `out` is borrowed for writing, so that nothing else touches it.
    unsafe { all_tiles(out.as_mut_ptr(), out_stride, started, a, b, factor, workers) }
}

/// [`multiply`] on this thread into columns of an output that other threads write too; `at` is its first element.
///
/// # Safety
/// No other thread touches the a.rows x b.cols elements meanwhile.
pub unsafe fn multiply_shared(out: Shared, at: usize, out_stride: usize, add: bool, a: View, b: &Packed, factor: f32) {
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    assert!(b.cols <= out_stride || a.rows == 1, "matmul: rows of the output do not overlap");
    assert!(at + (a.rows - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    check(a, b);
    // SAFETY: the assertions above bound every address; the caller keeps others away.
    unsafe {
        let out = out.pointer().add(at);
        all_tiles(out, out_stride, if add { out } else { std::ptr::null() }, a, b, factor, Workers::One);
    }
}

/// A new matrix factor * a b, whose memory is written once.
pub fn product(a: View, b: &Packed, factor: f32, workers: Workers) -> Vec<f32> {
    let len = a.rows * b.cols;
    let mut out: Vec<f32> = Vec::with_capacity(len);
    if len > 0 {
        check(a, b);
        // SAFETY: `check` bounds the views; the new buffer has room for a.rows rows of b.cols numbers and overlaps nothing. Tiles
        // do not read an output they do not start from, and together write every element.
        unsafe {
            all_tiles(out.as_mut_ptr(), b.cols, std::ptr::null(), a, b, factor, workers);
            out.set_len(len);
        }
    }
    out
}

fn check(a: View, b: &Packed) {
    assert_eq!(a.cols, b.inner, "matmul: inner sizes agree");
    assert!(a.cols > 0, "matmul: the inner size is not zero");
    assert!(a.row_stride == 1 || a.col_stride == 1, "matmul: rows or columns of the left matrix are contiguous");
    a.assert_inside();
}

/// out = factor * a b, or out += factor * a b, on all threads where that pays.
pub fn matmul(out: &mut [f32], out_stride: usize, accumulate: bool, a: View, b: View, factor: f32) {
    let workers = Workers::for_work(a.rows * a.cols * b.cols);
    let start = if accumulate { Start::Out } else { Start::Nothing };
    multiply(out, out_stride, start, a, &Packed::new(b, workers), factor, workers);
}

/// out = a b for square matrices by crate `gemm`: what our own product is measured against.
pub fn crate_product(out: &mut [f32], a: &[f32], b: &[f32], side: usize, threads: usize) {
    assert!(out.len() == side * side && a.len() == side * side && b.len() == side * side, "gemm: square matrices");
    let parallelism = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let row = side as isize;
    // SAFETY: three square matrices, checked above; `out` is borrowed for writing and so overlaps neither of the others.
    unsafe {
        gemm::gemm(
            side,
            side,
            side,
            out.as_mut_ptr(),
            1,
            row,
            false,
            a.as_ptr(),
            1,
            row,
            b.as_ptr(),
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// # Safety
/// The left matrix ends inside its slice and its inner size is that of `b`; `out` has room for a.rows rows of b.cols numbers,
/// `out_stride` apart, and so has `start` unless it is null; nothing else touches `out` meanwhile.
unsafe fn all_tiles(out: *mut f32, out_stride: usize, start: *const f32, a: View, b: &Packed, factor: f32, workers: Workers) {
    if let Numbers::Split(split) = &b.numbers {
        let target = amx::Target { out, start, stride: out_stride, factor };
        // SAFETY: the caller's promise.
        unsafe { all_strips(target, a, split, workers) };
        return;
    }
    let panels = panels(b.level, b.cols);
    let most = ROW_BLOCK;
    let job = Job { out: Pointer(out), out_stride, start: Pointer(start.cast_mut()), a, b, factor };
    let threads = pool::threads();
    if workers == Workers::One || threads == 1 {
        for (first, end) in cuts(a.rows, a.rows.div_ceil(most)) {
            // SAFETY: the caller's promise; rows and panels lie inside the output.
            unsafe { job.block(first, end, panels.clone()) };
        }
        return;
    }
    let panels: Vec<_> = panels.collect();
    // A few blocks per thread, so that an uneven load evens out; columns are cut where there are too few rows.
    let row_blocks = a.rows.div_ceil(most).max((2 * threads).min(a.rows.div_ceil(32)));
    let column_blocks = (4 * threads).div_ceil(row_blocks).min(panels.len());
    let rows: Vec<_> = cuts(a.rows, row_blocks).collect();
    let columns: Vec<_> = cuts(panels.len(), column_blocks).collect();
    pool::for_each(rows.len() * columns.len(), |i| {
        let ((first, end), (from, to)) = (rows[i / columns.len()], columns[i % columns.len()]);
        // SAFETY: as above; no two blocks share an element of the output.
        unsafe { job.block(first, end, panels[from..to].iter().copied()) };
    });
}

/// # Safety
/// As [`all_tiles`].
unsafe fn all_strips(target: amx::Target, a: View, b: &Split, workers: Workers) {
    let threads = pool::threads();
    if workers == Workers::One || threads == 1 {
        // SAFETY: the caller's promise; these are all rows and columns.
        unsafe { b.multiply(a, (0, a.rows), (0, b.strips()), target) };
        return;
    }
    // Rows are cut first, because every cut of the columns has the left matrix prepared once more.
    let row_blocks = (4 * threads).min(a.rows.div_ceil(2 * amx::STRIP));
    let column_blocks = (2 * threads).div_ceil(row_blocks).min(b.strips());
    let rows: Vec<_> = cuts(a.rows.div_ceil(amx::STRIP), row_blocks).collect();
    let columns: Vec<_> = cuts(b.strips(), column_blocks).collect();
    let target = SharedTarget(target);
    pool::for_each(rows.len() * columns.len(), |i| {
        let ((first, end), strips) = (rows[i / columns.len()], columns[i % columns.len()]);
        // SAFETY: the caller's promise; no two blocks share an element of the output.
        unsafe { b.multiply(a, (first * amx::STRIP, (end * amx::STRIP).min(a.rows)), strips, target.get()) };
    });
}

#[derive(Clone, Copy)]
struct SharedTarget(amx::Target);
// SAFETY: threads that share a target write to disjoint elements.
unsafe impl Send for SharedTarget {}
// SAFETY: as above.
unsafe impl Sync for SharedTarget {}

impl SharedTarget {
    fn get(self) -> amx::Target {
        self.0
    }
}

/// `0..len` in `pieces` pieces of nearly one size.
fn cuts(len: usize, pieces: usize) -> impl Iterator<Item = (usize, usize)> {
    let pieces = pieces.clamp(1, len.max(1));
    let (size, larger) = (len / pieces, len % pieces);
    let mut end = 0;
    (0..pieces).map(move |i| {
        let first = end;
        end += size + usize::from(i < larger);
        (first, end)
    })
}

struct Job<'a> {
    out: Pointer,
    out_stride: usize,
    start: Pointer,
    a: View<'a>,
    b: &'a Packed<'a>,
    factor: f32,
}

impl Job<'_> {
    /// Rows first..end of the output in the columns of `panels`.
    ///
    /// # Safety
    /// As [`all_tiles`]; rows and panels lie inside the output, and no other thread writes there.
    unsafe fn block(&self, first: usize, end: usize, panels: impl Iterator<Item = (usize, usize)> + Clone) {
        let a = self.a;
        let blocks = a.cols.div_ceil(if a.cols < LONG { INNER_BLOCK } else { LONG_INNER_BLOCK });
        let inner_blocks = || cuts(a.cols, blocks);
        // SAFETY (all blocks below): rows and panels are inside the output, inner blocks inside the inner size.
        if self.copies_left() {
            // As many blocks of the inner sum at a time as stay in cache.
            let spans: Vec<_> = inner_blocks().collect();
            let together = (LEFT_BLOCK / ((end - first) * a.cols.div_ceil(blocks))).max(1);
            let mut copy = scratch::take((end - first) * a.cols.min(together * LONG_INNER_BLOCK));
            for spans in spans.chunks(together) {
                let at = |span: (usize, usize)| (end - first) * (span.0 - spans[0].0);
                for &span in spans {
                    copy_left(a, (first, end), span, &mut copy[at(span)..]);
                }
                // What comes next of the right matrix is fetched meanwhile: it is too large to be near.
                let mut coming = panels.clone().flat_map(|panel| spans.iter().map(move |&span| (panel, span))).peekable();
                while let Some((panel, span)) = coming.next() {
                    let next = coming.peek().map(|&(panel, span)| self.b.piece(panel, span));
                    unsafe { self.tiles((first, end), span, panel, Left::Copied { copy: &copy[at(span)..], next }) };
                }
            }
            return;
        }
        if a.col_stride == 1 {
            for panel in panels {
                for span in inner_blocks() {
                    let at = &a.data[first * a.row_stride + span.0..];
                    unsafe { self.tiles((first, end), span, panel, Left::There { at, row: a.row_stride, inner: 1 }) };
                }
            }
            return;
        }
        for span in inner_blocks() {
            let at = &a.data[span.0 * a.col_stride + first..];
            for panel in panels.clone() {
                unsafe { self.tiles((first, end), span, panel, Left::There { at, row: 1, inner: a.col_stride }) };
            }
        }
    }

    /// Whether the left matrix is worth copying: its rows or columns lie far apart, and enough columns of the output make use of it.
    fn copies_left(&self) -> bool {
        let (stride, from) = if self.a.col_stride == 1 {
            (self.a.row_stride, COPY_FROM_ROW_STRIDE)
        } else {
            (self.a.col_stride, COPY_FROM_COL_STRIDE)
        };
        stride >= from && self.b.cols >= COPY_FROM_COLS
    }

    /// # Safety
    /// As [`Job::block`]; `left` starts at the first row and the first inner index.
    unsafe fn tiles(&self, rows: (usize, usize), span: (usize, usize), (column, vectors): (usize, usize), left: Left) {
        let level = self.b.level;
        let (count, most) = (rows.1 - rows.0, most_rows(level, vectors));
        match left {
            Left::There { at, row, inner } => {
                for (from, to) in cuts(count, count.div_ceil(most)) {
                    // SAFETY: the caller's promise; the tile's rows begin `from` rows after the first.
                    let left = (at[from * row..].as_ptr(), row, inner);
                    unsafe { self.tile((rows.0 + from, to - from), span, (column, vectors), left, Ahead::NOTHING) };
                }
            }
            Left::Copied { copy, next } => {
                let groups = count.div_ceil(COPIED_ROWS);
                let next: &[f32] = next.unwrap_or_default();
                let mut shares = next.chunks(next.len().div_ceil(groups).max(1));
                for from in (0..count).step_by(COPIED_ROWS) {
                    let size = COPIED_ROWS.min(count - from);
                    let ahead = Ahead::of(shares.next().unwrap_or_default());
                    for (part, end) in cuts(size, size.div_ceil(most)) {
                        let at = copy[from * (span.1 - span.0) + part..].as_ptr();
                        // SAFETY: the caller's promise; `copy_left` has laid these rows side by side.
                        unsafe { self.tile((rows.0 + from + part, end - part), span, (column, vectors), (at, 1, size), ahead) };
                    }
                }
            }
        }
    }

    /// One tile: rows from the first one on, so many of them; the left matrix as (address, step of a row, of the inner index).
    ///
    /// # Safety
    /// As [`Job::block`].
    unsafe fn tile(
        &self,
        (first, rows): (usize, usize),
        span: (usize, usize),
        (column, vectors): (usize, usize),
        (a, a_row, a_inner): (*const f32, usize, usize),
        ahead: Ahead,
    ) {
        let level = self.b.level;
        let width = vectors * level.lanes();
        let (panel, b_inner) = self.b.panel(column, vectors);
        // The first block of the inner sum starts from what was asked for, the others from what is there.
        let start = if span.0 == 0 { self.start.get() } else { self.out.get() };
        let at = first * self.out_stride + column;
        // SAFETY: the caller's promise bounds every address. A tile that would reach past the last column goes to a buffer
        // of its own, which is large enough for any, and only its inner columns are copied.
        unsafe {
            let mut tile = Tile {
                a,
                a_row,
                a_inner,
                b: panel.add(span.0 * b_inner),
                b_inner,
                inner: span.1 - span.0,
                out: self.out.get().add(at),
                out_row: self.out_stride,
                start: if start.is_null() { start } else { start.add(at) },
                start_row: self.out_stride,
                factor: self.factor,
                ahead,
            };
            if column + width <= self.b.cols {
                kernel::run(level, rows, vectors, &tile);
                return;
            }
            let mut buffer = [0.0_f32; 16 * WIDEST];
            let (out, cols) = (tile.out, self.b.cols - column);
            if !start.is_null() {
                for r in 0..rows {
                    std::ptr::copy_nonoverlapping(tile.start.add(r * self.out_stride), buffer[r * width..].as_mut_ptr(), cols);
                }
                tile.start = buffer.as_ptr();
                tile.start_row = width;
            }
            (tile.out, tile.out_row) = (buffer.as_mut_ptr(), width);
            kernel::run(level, rows, vectors, &tile);
            for r in 0..rows {
                std::ptr::copy_nonoverlapping(buffer[r * width..].as_ptr(), out.add(r * self.out_stride), cols);
            }
        }
    }
}

/// Rows first..end of `a` between two inner indices, as tiles read them: groups of [`COPIED_ROWS`] rows one after another, in each the
/// rows side by side, one inner index after another.
fn copy_left(a: View, (first, end): (usize, usize), span: (usize, usize), copy: &mut [f32]) {
    let (count, inner) = (end - first, span.1 - span.0);
    assert!(copy.len() >= count * inner, "matmul: room for the copied rows");
    a.rows(first, end).cols(span.0, span.1).assert_inside();
    let at = first * a.row_stride + span.0 * a.col_stride;
    if a.col_stride != 1 {
        math::copy_in_groups(&a.data[at..], a.col_stride, count, &mut copy[..count * inner]);
        return;
    }
    for from in (0..count).step_by(COPIED_ROWS) {
        let size = COPIED_ROWS.min(count - from);
        let (rows, out) = (&a.data[at + from * a.row_stride..], &mut copy[from * inner..][..size * inner]);
        // SAFETY: so many rows of `inner` numbers of a, checked above, to as many numbers of `out`.
        unsafe { transpose(rows.as_ptr(), a.row_stride, size, inner, out.as_mut_ptr(), size) };
    }
}

/// The left matrix from some row and inner index on.
#[derive(Clone, Copy)]
enum Left<'a> {
    /// Where it lies, with the steps of a row and of the inner index.
    There { at: &'a [f32], row: usize, inner: usize },
    /// As [`copy_left`] made it, and the piece of the right matrix that comes after this one.
    Copied { copy: &'a [f32], next: Option<&'a [f32]> },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shapes of every path: single rows and columns, more work in rows, in columns, in the inner sum, widths that fill registers.
    fn shapes() -> Vec<(usize, usize, usize)> {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize + 1
        };
        let mut shapes =
            vec![(3, 700, 1000), (1, 300, 2000), (512, 1, 900), (97, 2, 4000), (256, 64, 512), (700, 48, 33), (600, 96, 200)];
        shapes.extend((0..60).map(|_| (below(200), below(200), below(700))));
        shapes
    }

    fn fill(len: usize, salt: usize) -> Vec<f32> {
        (0..len).map(|i| (((i * 7919 + salt) % 1013) as f32 - 506.0) / 300.0).collect()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let pools = [1, 2, 3, 4].map(pool);
        for (m, n, k) in shapes() {
            let (a, b) = (fill(m * k, 1), fill(k * n, 2));
            for layout in 0..4 {
                let a = if layout & 1 == 0 { View::new(&a, m, k) } else { View::new(&a, k, m).t() };
                let b = if layout & 2 == 0 { View::new(&b, k, n) } else { View::new(&b, n, k).t() };
                let results = pools.each_ref().map(|pool| {
                    let mut sum = vec![0.5; m * n];
                    let new = pool.install(|| {
                        matmul(&mut sum, n, true, a, b, 0.7);
                        product(a, &Packed::new(b, Workers::All), 0.7, Workers::All)
                    });
                    sum.extend(new);
                    sum.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                });
                for (result, threads) in results[1..].iter().zip(2..) {
                    assert!(results[0] == *result, "{m} x {n} x {k}, layout {layout}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (m, n, k) in shapes() {
            let (a, b, other) = (fill(m * k, 1), fill(k * n, 2), fill(m * n, 3));
            for layout in 0..4 {
                let left = if layout & 1 == 0 { View::new(&a, m, k) } else { View::new(&a, k, m).t() };
                let right = if layout & 2 == 0 { View::new(&b, k, n) } else { View::new(&b, n, k).t() };
                let mut out = vec![f32::NAN; m * n];
                multiply(&mut out, n, Start::Other(&other), left, &Packed::new(right, Workers::One), 0.7, Workers::One);
                for at in (0..m * n).step_by(7) {
                    let element = |v: View, i: usize, j: usize| f64::from(v.data[i * v.row_stride + j * v.col_stride]);
                    let (i, j) = (at / n, at % n);
                    let sum: f64 = (0..k).map(|x| element(left, i, x) * element(right, x, j)).sum();
                    let expected = f64::from(other[at]) + 0.7 * sum;
                    // The sum of k rounding errors of terms below 3.
                    assert!((f64::from(out[at]) - expected).abs() < 1e-6 * 3.0 * k as f64, "{m} x {n} x {k}, layout {layout}");
                }
            }
        }
    }
}
