//! Cuts an output into blocks for threads and caches, and those into tiles for `kernel.rs`.
#![allow(unsafe_code)]

use super::super::amx::{self, Split};
use super::super::kernel::{self, Ahead, Lines, Tile, WIDEST, most_rows};
use super::super::math;
use super::super::pool;
use super::super::scratch;
use super::super::transpose::transpose;
use super::packed::{Numbers, Packed, panels};
use super::{View, Workers};

/// Longest block of a short inner sum: a panel of it fits the first-level cache.
const INNER_BLOCK: usize = 192;
/// The same of a long one, whose panels come from the second-level cache: the output is read and written less often.
const LONG_INNER_BLOCK: usize = 384;
const LONG: usize = 512;
/// Fewer rows are not worth a task of their own.
const LEAST_ROWS: usize = 32;
/// Rows computed together: their part of the left matrix stays in the second-level cache.
const ROW_BLOCK: usize = 256;
/// Rows of the left matrix this far apart in memory are copied first, because each is a page of its own, if the output has so many columns
/// to make the copy worth its time.
const COPY_ROWS_FROM_STRIDE: usize = 512;
const COPY_ROWS_FROM_COLS: usize = 512;
/// The same for its columns, when it is a transpose: they would compete for few places in the cache.
const COPY_COLUMNS_FROM_STRIDE: usize = 128;
const COPY_COLUMNS_FROM_COLS: usize = 128;
/// Rows side by side in the copy: a cache line of them, two tiles.
const COPIED_ROWS: usize = math::GROUP;
#[derive(Clone, Copy)]
pub struct Pointer(pub *mut f32);
// SAFETY: whoever shares a Pointer between threads writes to disjoint elements only.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    pub fn get(self) -> *mut f32 {
        self.0
    }
}

/// What this thread needs after a product: two at a time are fetched.
pub type Then<'a> = [&'a [f32]; 2];

/// Where a product goes: rows `stride` apart, and what it is added to, at the same places; null: nothing.
#[derive(Clone, Copy)]
pub struct Target {
    pub out: *mut f32,
    pub stride: usize,
    pub start: *const f32,
}

/// # Safety
/// The left matrix ends inside its slice and its inner size is that of `b`; the target has room for a.rows rows of b.cols numbers, and so
/// has its start unless it is null; nothing else touches it meanwhile.
pub unsafe fn all_tiles(target: Target, a: View, b: &Packed, factor: f32, workers: Workers, then: Then) {
    let Target { out, stride: out_stride, start } = target;
    if let Numbers::Split(split) = &b.numbers {
        let target = amx::Target { out, start, stride: out_stride, factor };
        // SAFETY: the caller's promise.
        unsafe { all_strips(target, a, split, workers) };
        return;
    }
    let panels = panels(b.level, b.cols);
    let most = ROW_BLOCK;
    let job = Job { out: Pointer(out), out_stride, start: Pointer(start.cast_mut()), b, factor };
    let threads = pool::threads();
    if workers == Workers::One || threads == 1 {
        let blocks = a.rows.div_ceil(most);
        let mut shares = then.map(|then| shares(then, blocks));
        for (first, end) in cuts(a.rows, blocks) {
            // SAFETY: the caller's promise; rows and panels lie inside the output.
            unsafe { job.block(a, (first, end), panels.clone(), shares.each_mut().map(next_share)) };
        }
        return;
    }
    let panels: Vec<_> = panels.collect();
    let (row_blocks, column_blocks) = blocks(a.rows, b.cols, panels.len(), threads);
    let rows: Vec<_> = cuts(a.rows, row_blocks).collect();
    let columns: Vec<_> = cuts(panels.len(), column_blocks).collect();
    pool::for_each(rows.len() * columns.len(), |i| {
        let ((first, end), (from, to)) = (rows[i / columns.len()], columns[i % columns.len()]);
        // SAFETY: as above; no two blocks share an element of the output.
        unsafe { job.block(a, (first, end), panels[from..to].iter().copied(), [&[]; 2]) };
    });
}

/// Into how many blocks the rows and the panels of an output are cut: a few for each thread, so that an uneven load evens out. Every cut of
/// the rows has the right matrix read once more, every cut of the columns the left one; the least of both is taken.
fn blocks(rows: usize, cols: usize, panels: usize, threads: usize) -> (usize, usize) {
    let wanted = 4 * threads;
    let least = rows.div_ceil(ROW_BLOCK);
    let most = rows.div_ceil(LEAST_ROWS).max(least);
    let by_rows = |blocks: usize| (blocks, wanted.div_ceil(blocks).min(panels));
    let cost = |&(row_blocks, column_blocks): &(usize, usize)| {
        let missing = wanted.saturating_sub(row_blocks * column_blocks);
        (missing, row_blocks * cols + column_blocks * rows)
    };
    (least..=most.min(least.max(wanted))).map(by_rows).min_by_key(cost).unwrap_or((1, 1))
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

/// Numbers in at most so many pieces.
fn shares(numbers: &[f32], pieces: usize) -> std::slice::Chunks<'_, f32> {
    numbers.chunks(numbers.len().div_ceil(pieces).max(1))
}

fn next_share<'a>(shares: &mut std::slice::Chunks<'a, f32>) -> &'a [f32] {
    shares.next().unwrap_or_default()
}

/// `0..len` in `pieces` pieces of nearly one size.
pub fn cuts(len: usize, pieces: usize) -> impl Iterator<Item = (usize, usize)> {
    let pieces = pieces.clamp(1, len.max(1));
    let (size, larger) = (len / pieces, len % pieces);
    let mut end = 0;
    (0..pieces).map(move |i| {
        let first = end;
        end += size + usize::from(i < larger);
        (first, end)
    })
}

/// `count` rows as tiles of at most `most` rows and nearly one size: (first row, rows of a tile, tiles of that size below each other).
pub fn heights(count: usize, most: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let tiles = count.div_ceil(most);
    let (size, larger) = (count / tiles, count % tiles);
    let first = (0, size + 1, larger);
    [first, (larger * (size + 1), size, tiles - larger)].into_iter().filter(|&(_, _, tiles)| tiles > 0)
}

pub struct Job<'a> {
    pub(super) out: Pointer,
    pub(super) out_stride: usize,
    pub(super) start: Pointer,
    pub(super) b: &'a Packed<'a>,
    pub(super) factor: f32,
}

impl Job<'_> {
    /// Rows first..end of the output in the columns of `panels`, from the whole left matrix; `then` is asked for where that costs nothing.
    ///
    /// # Safety
    /// As [`all_tiles`]; rows and panels lie inside the output, and no other thread writes there.
    unsafe fn block(
        &self,
        a: View,
        (first, end): (usize, usize),
        panels: impl Iterator<Item = (usize, usize)> + Clone,
        then: Then,
    ) {
        let blocks = a.cols.div_ceil(if a.cols < LONG { INNER_BLOCK } else { LONG_INNER_BLOCK });
        let inner_blocks = || cuts(a.cols, blocks);
        // SAFETY (all blocks below): rows and panels are inside the output, inner blocks inside the inner size.
        if self.copies(a) {
            let mut copy = scratch::take((end - first) * LONG_INNER_BLOCK.min(a.cols));
            let spans: Vec<_> = inner_blocks().collect();
            let panels: Vec<_> = panels.collect();
            for (i, &span) in spans.iter().enumerate() {
                copy_left(a, (first, end), span, &mut copy);
                // What comes next of both matrices is fetched meanwhile: they are too large to be near.
                let next_span = spans.get(i + 1).copied();
                let parts =
                    next_span.map(|next| cuts(next.1 - next.0, panels.len()).map(move |(from, to)| (next.0 + from, next.0 + to)));
                let mut parts = parts.into_iter().flatten();
                for (j, &panel) in panels.iter().enumerate() {
                    let right = match (panels.get(j + 1), next_span) {
                        (Some(&panel), _) => self.b.piece(panel, span),
                        (None, Some(next)) => self.b.piece(panels[0], next),
                        (None, None) => &[],
                    };
                    let left = parts.next().filter(|_| a.row_stride == 1).map(|(from, to)| a.rows(first, end).cols(from, to));
                    unsafe { self.tiles((first, end), span, panel, Left::Copied { copy: &copy, left, right }) };
                }
            }
            return;
        }
        if a.col_stride == 1 {
            for panel in panels {
                for span in inner_blocks() {
                    let at = &a.data[first * a.row_stride + span.0..];
                    unsafe {
                        self.tiles((first, end), span, panel, Left::There { at, row: a.row_stride, inner: 1, then: [&[]; 2] })
                    };
                }
            }
            return;
        }
        let mut shares = then.map(|then| shares(then, blocks * panels.clone().count()));
        for span in inner_blocks() {
            let at = &a.data[span.0 * a.col_stride + first..];
            for panel in panels.clone() {
                let then = shares.each_mut().map(next_share);
                unsafe { self.tiles((first, end), span, panel, Left::There { at, row: 1, inner: a.col_stride, then }) };
            }
        }
    }

    /// Whether the left matrix is worth copying: its rows or columns lie far apart, and enough columns of the output make use of it.
    fn copies(&self, a: View) -> bool {
        if a.col_stride == 1 {
            a.row_stride >= COPY_ROWS_FROM_STRIDE && self.b.cols >= COPY_ROWS_FROM_COLS
        } else {
            a.col_stride >= COPY_COLUMNS_FROM_STRIDE && self.b.cols >= COPY_COLUMNS_FROM_COLS
        }
    }

    /// # Safety
    /// As [`Job::block`]; `left` starts at the first row and the first inner index.
    unsafe fn tiles(&self, rows: (usize, usize), span: (usize, usize), (column, vectors): (usize, usize), left: Left) {
        let level = self.b.level;
        let (count, most) = (rows.1 - rows.0, most_rows(level, vectors));
        match left {
            Left::There { at, row, inner, then } => {
                let mut ahead = match then {
                    [[], []] => Ahead::Output,
                    [one, other] => Ahead::All { left: Lines::of(one, other), right: Lines::of(other, one) },
                };
                for (from, height, tiles) in heights(count, most) {
                    // SAFETY: the caller's promise; the tiles' rows begin `from` rows after the first.
                    let left = (at[from * row..].as_ptr(), row, inner);
                    unsafe { self.tile((rows.0 + from, height, tiles), span, (column, vectors), left, ahead) };
                    ahead = Ahead::Output;
                }
            }
            Left::Copied { copy, left, right } => {
                let groups = count.div_ceil(COPIED_ROWS);
                let mut shares = shares(right, groups);
                for from in (0..count).step_by(COPIED_ROWS) {
                    let size = COPIED_ROWS.min(count - from);
                    let left = match left {
                        Some(next) => Lines::apart(&next.data[from..], next.cols, next.col_stride),
                        None => Lines::of(&[], &copy[..1]),
                    };
                    let mut ahead = Ahead::All { left, right: Lines::of(next_share(&mut shares), &copy[..1]) };
                    for (part, height, tiles) in heights(size, most) {
                        let at = copy[from * (span.1 - span.0) + part..].as_ptr();
                        let place = (rows.0 + from + part, height, tiles);
                        // SAFETY: the caller's promise; `copy_left` has laid these rows side by side.
                        unsafe { self.tile(place, span, (column, vectors), (at, 1, size), ahead) };
                        ahead = Ahead::Output;
                    }
                }
            }
        }
    }

    /// Tiles below each other: first row, rows of each, how many; the left matrix as (address, step of a row, of the inner index).
    ///
    /// # Safety
    /// As [`Job::block`].
    pub unsafe fn tile(
        &self,
        (first, rows, count): (usize, usize, usize),
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
                count,
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
            let (out, start, cols) = (tile.out, tile.start, self.b.cols - column);
            (tile.out, tile.out_row, tile.start_row, tile.count) = (buffer.as_mut_ptr(), width, width, 1);
            for top in (0..count).map(|i| i * rows) {
                if !start.is_null() {
                    for r in 0..rows {
                        let from = start.add((top + r) * self.out_stride);
                        std::ptr::copy_nonoverlapping(from, buffer[r * width..].as_mut_ptr(), cols);
                    }
                    tile.start = buffer.as_ptr();
                }
                tile.a = a.add(top * a_row);
                kernel::run(level, rows, vectors, &tile);
                for r in 0..rows {
                    std::ptr::copy_nonoverlapping(buffer[r * width..].as_ptr(), out.add((top + r) * self.out_stride), cols);
                }
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
    /// Where it lies, with the steps of a row and of the inner index, and what else is asked for meanwhile.
    There { at: &'a [f32], row: usize, inner: usize, then: Then<'a> },
    /// As [`copy_left`] made it, and the pieces of both matrices that come after this one; the left one if its columns are contiguous.
    Copied { copy: &'a [f32], left: Option<View<'a>>, right: &'a [f32] },
}
