//! From numbers to things people look at: drawings, tables, figures, the report. Reads plain data; runs nothing.

pub mod chart;
pub mod dag;
pub mod figure;
pub mod report;
pub mod statistics;
pub mod table;
pub mod tidy;
