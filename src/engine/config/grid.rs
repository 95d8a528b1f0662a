//! Expands a matrix into points. `exclude` and `include` behave as in CI matrices.
//!
//! `exclude` drops every combination that agrees with all the values it names. `include` is applied afterwards, in order: an
//! entry that contradicts no axis of a combination adds its other values to it; one that fits nowhere becomes a new point.

use serde_json::Value;

use super::ids::text_of;
use super::locate::Seg;

/// A point of a grid: axis names and values, in the order of the axes.
pub type Point = Vec<(String, Value)>;

/// The most nodes one stage may have. A larger grid is a slip of the pen more often than a plan.
pub const MOST_POINTS: usize = 100_000;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GridError {
    #[error("axis `{axis}` must be a list of plain values, such as `[1, 2, 4]`")]
    NotAList { axis: String },
    #[error("axis `{axis}` holds a value that is not plain; use text, numbers or booleans")]
    NotPlain { axis: String, at: usize },
    #[error("axis `{axis}` holds `{value}` twice")]
    Twice { axis: String, value: String, at: usize },
    #[error("`{field}` must be a list of mappings, such as `[{{L: 48, N: 8}}]`")]
    NotMappings { field: &'static str },
    #[error("`exclude` names `{axis}`, which is not an axis{}", super::known(axes, axis))]
    UnknownAxis { axis: String, axes: Vec<String>, at: usize },
    #[error("the grid has {points} points, and {MOST_POINTS} is the most; make an axis shorter")]
    TooLarge { points: usize },
    #[error("no point is left of the grid")]
    Empty,
}

impl GridError {
    /// Where below `grid` the mistake stands.
    pub fn path(&self) -> Vec<Seg> {
        match self {
            GridError::NotAList { axis } => vec![axis.as_str().into()],
            GridError::NotPlain { axis, at } | GridError::Twice { axis, at, .. } => vec![axis.as_str().into(), Seg::Index(*at)],
            GridError::NotMappings { field } => vec![(*field).into()],
            GridError::UnknownAxis { axis, at, .. } => vec!["exclude".into(), Seg::Index(*at), axis.as_str().into()],
            GridError::TooLarge { .. } | GridError::Empty => vec![],
        }
    }
}

/// All points of the grid, the last axis running fastest.
pub fn expand(grid: &[(String, Value)]) -> Result<Vec<Point>, GridError> {
    let mut axes: Vec<(&str, &[Value])> = Vec::new();
    let (mut exclude, mut include) = (Vec::new(), Vec::new());
    for (name, value) in grid {
        match name.as_str() {
            "exclude" => exclude = mappings("exclude", value)?,
            "include" => include = mappings("include", value)?,
            axis => {
                let list = value.as_array().ok_or_else(|| GridError::NotAList { axis: axis.to_string() })?;
                check_axis(axis, list)?;
                if !list.is_empty() {
                    axes.push((axis, list));
                }
            }
        }
    }
    let total = axes.iter().try_fold(1usize, |total, (_, values)| total.checked_mul(values.len())).unwrap_or(usize::MAX);
    if total > MOST_POINTS {
        return Err(GridError::TooLarge { points: total });
    }
    for (at, entry) in exclude.iter().enumerate() {
        if let Some(axis) = entry.keys().find(|key| !axes.iter().any(|(axis, _)| axis == key)) {
            let axes = axes.iter().map(|(axis, _)| axis.to_string()).collect();
            return Err(GridError::UnknownAxis { axis: axis.clone(), axes, at });
        }
    }
    let mut points: Vec<Point> = if axes.is_empty() { Vec::new() } else { combinations(&axes) };
    points.retain(|point| !exclude.iter().any(|entry| entry.iter().all(|(axis, value)| value_of(point, axis) == Some(value))));
    let originals = points.len();
    for entry in include {
        let mut fitted = false;
        for point in &mut points[..originals] {
            // Values added by an earlier `include` may be replaced; those of an axis may not.
            let agrees =
                entry.iter().all(|(key, value)| !axes.iter().any(|(axis, _)| axis == key) || value_of(point, key) == Some(value));
            if agrees {
                fitted = true;
                for (key, value) in entry {
                    match point.iter_mut().find(|(have, _)| have == key) {
                        Some(slot) => slot.1 = value.clone(),
                        None => point.push((key.clone(), value.clone())),
                    }
                }
            }
        }
        if !fitted {
            points.push(entry.iter().map(|(key, value)| (key.clone(), value.clone())).collect());
        }
    }
    if points.is_empty() { Err(GridError::Empty) } else { Ok(points) }
}

fn value_of<'p>(point: &'p Point, axis: &str) -> Option<&'p Value> {
    point.iter().find(|(have, _)| have == axis).map(|(_, value)| value)
}

fn combinations(axes: &[(&str, &[Value])]) -> Vec<Point> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for (axis, values) in axes {
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.push((axis.to_string(), value.clone()));
                    longer
                })
            })
            .collect();
    }
    points
}

fn check_axis(axis: &str, list: &[Value]) -> Result<(), GridError> {
    let mut seen = std::collections::HashSet::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        let text = text_of(value).ok_or_else(|| GridError::NotPlain { axis: axis.to_string(), at })?;
        if !seen.insert(text.clone()) {
            return Err(GridError::Twice { axis: axis.to_string(), value: text, at });
        }
    }
    Ok(())
}

fn mappings<'v>(field: &'static str, value: &'v Value) -> Result<Vec<&'v serde_json::Map<String, Value>>, GridError> {
    let list = value.as_array().ok_or(GridError::NotMappings { field })?;
    list.iter().map(|entry| entry.as_object().ok_or(GridError::NotMappings { field })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grid(value: Value) -> Vec<(String, Value)> {
        value.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn ids(value: Value) -> Vec<String> {
        let points = expand(&grid(value)).unwrap();
        points.iter().map(|point| super::super::ids::point_id(point.iter().map(|(axis, value)| (axis.as_str(), value)))).collect()
    }

    #[test]
    fn the_last_axis_runs_fastest() {
        assert_eq!(ids(json!({"L": [12, 24], "N": [1, 2]})), ["L12-N1", "L12-N2", "L24-N1", "L24-N2"]);
    }

    #[test]
    fn exclude_drops_every_point_that_agrees() {
        assert_eq!(ids(json!({"L": [12, 24], "N": [1, 2], "exclude": [{"L": 24}]})), ["L12-N1", "L12-N2"]);
    }

    #[test]
    fn include_extends_points_it_fits_and_adds_those_it_does_not() {
        let points = ids(json!({"N": [1, 2], "include": [{"N": 2, "lr": 1e-3}, {"N": 4, "lr": 2e-3}, {"tag": "x"}]}));
        assert_eq!(points, ["N1-x", "N2-lr1e-3-x", "N4-lr2e-3"]);
    }

    #[test]
    fn mistakes_are_refused() {
        let error = |value| expand(&grid(value)).unwrap_err().to_string();
        assert_eq!(error(json!({"L": 3})), "axis `L` must be a list of plain values, such as `[1, 2, 4]`");
        assert_eq!(error(json!({"lr": [0.001, 1e-3]})), "axis `lr` holds `1e-3` twice");
        assert!(error(json!({"L": [1], "exclude": [{"l": 1}]})).contains("did you mean `L`"));
        assert_eq!(error(json!({"L": [1], "exclude": [{"L": 1}]})), "no point is left of the grid");
        let long: Vec<u32> = (0..400).collect();
        assert!(error(json!({"a": long, "b": long})).contains("160000 points"));
    }
}
