//! Figure "energy": the norm of the residual stream over depth and over loops, in the first steps of training.

use super::series::{RULES, add_curve, curves, letter, list, means, nothing, step_ramp};
use super::{Drawn, Figure, Settings};
use crate::render::chart::colour::ordered;
use crate::render::chart::layout::PAGE;
use crate::render::chart::plot::Corner;
use crate::render::chart::{Axis, Cell, Chart, Plot, Row, Scale, Shape};
use crate::render::statistics::log_slope;
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "energy",
    title: "Linear scaling stabilizes looped networks; sqrt scaling does not",
    claim: "The paper: 1/√L keeps the norm R = ‖h‖/√d of a deep stack bounded (b), 1/√N fails for loops (e), and 1/N keeps it bounded \
            across loop counts (f). R at the end of the stack, log axes, one line per optimiser step, mean over seeds.",
    claims: &["E1", "E2"],
    tables: &["init-diagnostics"],
    draw,
};

const STACKS: [(&str, &str, &str); 2] =
    [("deep", "deep", "number of independent blocks *k*"), ("looped", "looped", "loop count *N*")];

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let table = tables.get("init-diagnostics");
    let mut chart = Chart::new(
        FIGURE.name,
        "Six panels of the normalised residual-stream norm R: deep stacks above, looped ones below; without scaling, with square-root \
         scaling and with linear scaling, one line per optimiser step.",
        PAGE,
    );
    let mut steps: Vec<i64> = table.of("R").filter(|row| row.visit.is_none()).filter_map(|row| row.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut slopes = Vec::new();
    for (r, (stack, stack_name, x_label)) in STACKS.into_iter().enumerate() {
        let found = RULES.map(|(rule, ..)| curves(table, "R", stack, rule));
        let all = found.iter().flat_map(|curves| curves.values()).flat_map(|curve| means(curve).into_iter().map(|(_, y)| y));
        let y_range = Scale::Log10.around(all, 0.06);
        let mut cells = Vec::new();
        for (c, ((rule, _, _), curves)) in RULES.into_iter().zip(&found).enumerate() {
            let symbol = if stack == "deep" { "*k*" } else { "*N*" };
            let epsilon = match rule {
                "none" => "*ε* = 1".to_string(),
                "sqrt" => format!("*ε* = 1/√{symbol}"),
                _ => format!("*ε* = 1/{symbol}"),
            };
            let title = format!("({}) {stack_name}, {epsilon}", letter(3 * r + c));
            if curves.is_empty() {
                let text = format!("No {stack} stack with rule `{rule}` was measured in this profile.");
                cells.push(nothing(title, text));
                continue;
            }
            let y = Axis::log10("*R* = ‖*h*‖ / √*d*").range(y_range.0, y_range.1);
            let mut plot = Plot::new(title, Axis::log2(x_label), if c == 0 { y } else { y.bare() });
            for (at, (step, curve)) in curves.iter().enumerate() {
                let what =
                    |n: i64| format!("{stack_name} {rule}, {} = {n}, step {step}: R", if stack == "deep" { "k" } else { "N" });
                let colour = ordered(steps.iter().position(|have| have == step).unwrap_or(at), steps.len());
                add_curve(
                    &mut plot.layers,
                    curve,
                    &colour,
                    Shape::Circle,
                    1.9,
                    &|n| what(n).trim_end_matches(": R").to_string(),
                    false,
                );
            }
            let slope =
                |curve: Option<&std::collections::BTreeMap<i64, Vec<f64>>>| curve.and_then(|curve| log_slope(&means(curve)));
            if let (Some(first), Some(last)) = (slope(curves.values().next()), slope(curves.values().next_back())) {
                plot.notes = vec![format!("slope {} at *t* = {}", signed(first), curves.keys().next().unwrap_or(&0))];
                if curves.len() > 1 {
                    plot.notes.push(format!("{} at *t* = {}", signed(last), curves.keys().next_back().unwrap_or(&0)));
                }
                plot.notes_at = Corner::TopLeft;
                slopes.push((stack_name, rule, first, last));
            }
            cells.push(Cell::Plot(plot));
        }
        chart.rows.push(Row { height: 128.0, cells });
    }
    if !steps.is_empty() {
        chart.ramp = Some(step_ramp(&steps));
    }
    let told: Vec<String> = slopes
        .iter()
        .map(|(stack, rule, first, last)| {
            format!("{stack} {rule} {} at first and {} at the last step", signed(*first), signed(*last))
        })
        .collect();
    let ours = if told.is_empty() { String::new() } else { format!("Here the log-log slopes of R are: {}.", list(&told)) };
    Drawn { chart, ours }
}

pub fn signed(value: f64) -> String {
    format!("{value:.2}").replace('-', "−").replace("−0.00", "0.00")
}
