//! Matrices inside slices.

/// A matrix inside a slice: element (i, j) at i * row_stride + j * col_stride.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(in crate::ops::cpu) data: &'a [f32],
    pub(in crate::ops::cpu) rows: usize,
    pub(in crate::ops::cpu) cols: usize,
    pub(in crate::ops::cpu) row_stride: usize,
    pub(in crate::ops::cpu) col_stride: usize,
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

    /// How far apart rows are.
    pub fn row_stride(&self) -> usize {
        self.row_stride
    }

    pub(in crate::ops::cpu) fn assert_inside(&self) {
        if self.rows > 0 && self.cols > 0 {
            let last = (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride;
            assert!(last < self.data.len(), "matmul: a view ends inside its slice");
        }
    }
}
