//! A small chart library: panels with axes, lines, bands, points and heat maps, laid out to the point and written as SVG, PNG and PDF.
//! Knows nothing of the paper; `figure/` says what is drawn.

pub mod axis;
pub mod colour;
pub mod export;
pub mod heat;
pub mod layout;
pub mod pdf;
pub mod plot;
pub mod svg;
pub mod text;

pub use axis::{Axis, Scale};
pub use heat::Heat;
pub use layout::{Cell, Chart, Key, Ramp, Row, Sample};
pub use plot::{Dot, Layer, Plot, Shape};
