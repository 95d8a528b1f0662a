//! From numbers to things people look at: drawings, tables, figures, the report. Reads plain data; runs nothing.

pub mod dag;
pub mod report;
