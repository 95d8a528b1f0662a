//! The language of `measure`: arithmetic over functions of selections. Parses; what a function computes is in `measure.rs`.
//!
//! ```text
//! slope(log R ~ log N)                       a line through logarithms
//! mean(cosine[j=8]) - mean(cosine[j<8])      brackets narrow down what `where` selects
//! optimum_slope(eval_loss ~ lr by N)         one curve over lr for each N
//! regret(eval_loss ~ lr, at = argmin(eval_loss[N=1] ~ lr))
//! parameters(L = 24)                         computed from the code, not measured
//! ```

use super::facts;
use super::vocabulary::{check_column, known};
use crate::paper::tidy::{DIMENSIONS, DimKind};

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Number(f64),
    Negative(Box<Expr>),
    Binary(char, Box<Expr>, Box<Expr>),
    Call(Call),
}

/// A function with what stands between its parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub function: &'static Function,
    /// Where it stands in the text, in bytes.
    pub at: usize,
    pub args: Args,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Args {
    Selection(Selection),
    Share(Selection, Compare, f64),
    Formula(Formula),
    Regret(Formula, Box<Expr>),
    Number(Box<Expr>),
    Fact(Vec<(String, f64)>),
}

/// `metric[condition, ...]`, or the quotient of two metrics, row by row: `metric / other[condition, ...]`
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    pub metric: String,
    pub over: Option<(String, usize)>,
    pub at: usize,
    pub conditions: Vec<Condition>,
}

/// `[log] selection ~ [log] column [by column]`
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    pub y: Selection,
    pub log_y: bool,
    pub x: String,
    pub log_x: bool,
    pub by: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub column: String,
    pub test: Test,
}

impl Condition {
    /// Whether it names values, and so takes the place of other conditions on its column.
    pub fn replaces(&self) -> bool {
        matches!(self.test, Test::Is(Compare::Equal, _) | Test::Among(_))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Is(Compare, Value),
    Among(Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Compare {
    pub fn holds(self, left: f64, right: f64) -> bool {
        // Rates such as 1.25e-3 may have gone through text or arithmetic.
        let same = (left - right).abs() <= 1e-9 * left.abs().max(right.abs());
        match self {
            Compare::Equal => same,
            Compare::NotEqual => !same,
            Compare::Below => left < right && !same,
            Compare::AtMost => left < right || same,
            Compare::Above => left > right && !same,
            Compare::AtLeast => left > right || same,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
    /// The smallest or largest value that the other conditions leave.
    Smallest,
    Largest,
    /// The value of another column of the same row.
    Column(String),
}

/// What a function takes, and how it is resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Selection,
    Share,
    Line,
    /// A curve over the learning rate, and several of them.
    Curve,
    Curves,
    Regret,
    Number,
    Fact,
}

#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: &'static str,
    pub form: Form,
    pub about: &'static str,
}

const fn function(name: &'static str, form: Form, about: &'static str) -> Function {
    Function { name, form, about }
}

/// Every function but the facts, which are in `facts.rs`.
pub const FUNCTIONS: &[Function] = &[
    function("mean", Form::Selection, "mean of all values"),
    function("median", Form::Selection, "middle value"),
    function("min", Form::Selection, "smallest value"),
    function("max", Form::Selection, "largest value"),
    function("sum", Form::Selection, "sum of all values"),
    function("spread", Form::Selection, "largest over smallest value"),
    function("only", Form::Selection, "the value that all rows have; different values are INCONCLUSIVE"),
    function("count", Form::Selection, "number of points, seeds not counted apart"),
    function("share", Form::Share, "share of the values for which a comparison holds"),
    function("slope", Form::Line, "slope of the least-squares line"),
    function(
        "optimum",
        Form::Curve,
        "log2 of the learning rate at which a quadratic through the five points around the lowest is lowest",
    ),
    function("curvature", Form::Curve, "half the second derivative of that quadratic, nats per squared octave"),
    function(
        "noise",
        Form::Curve,
        "standard deviation of a run, what its seed shares with the other rates left out; has no interval",
    ),
    function("resolution", Form::Curve, "standard deviation, in octaves, of the optimum one seed would show; has no interval"),
    function("argmin", Form::Curve, "the learning rate of the grid with the lowest loss"),
    function("best", Form::Curve, "the lowest loss of the grid"),
    function("optimum_slope", Form::Curves, "slope of `optimum` over log2 of the `by` column"),
    function("node_shift", Form::Curves, "largest distance, in nodes of the grid, of an argmin from that of the smallest `by`"),
    function("node_spread", Form::Curves, "distance between the lowest and the highest argmin, in nodes of the grid"),
    function("largest_rise", Form::Curves, "largest rise of `best` from one `by` to the next; negative if it falls everywhere"),
    function("regret", Form::Regret, "loss at a rate of the grid above the lowest of the grid"),
    function("abs", Form::Number, "absolute value"),
    function("log", Form::Number, "natural logarithm"),
    function("log2", Form::Number, "logarithm to base 2"),
    function("exp", Form::Number, "exponential"),
    function("sqrt", Form::Number, "square root"),
];

/// A mistake and where it is in the text, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    pub at: usize,
    pub message: String,
}

pub fn parse(text: &str) -> Result<Expr, Mistake> {
    let mut parser = Parser { text, at: 0 };
    let expr = parser.sum()?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.wrong(format!("expected the end or an operator, found `{}`", &text[parser.at..])));
    }
    Ok(expr)
}

/// A condition as written in `where`: a value, or a comparison such as `<= 6`.
pub fn parse_test(column: &str, text: &str) -> Result<Test, Mistake> {
    let mut parser = Parser { text, at: 0 };
    parser.space();
    let compare = parser.compare().unwrap_or(Compare::Equal);
    let value = parser.value(column)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.wrong(format!("expected the end of the value, found `{}`", &text[parser.at..])));
    }
    check_order(column, compare, &value).map_err(|message| Mistake { at: 0, message })?;
    Ok(Test::Is(compare, value))
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn wrong(&self, message: impl Into<String>) -> Mistake {
        Mistake { at: self.at, message: message.into() }
    }

    fn space(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn rest(&mut self) -> &'t str {
        self.space();
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, after: &str) -> Result<(), Mistake> {
        if self.take(token) {
            return Ok(());
        }
        let found = self.found();
        Err(self.wrong(format!("expected `{token}` after {after}, found {found}")))
    }

    fn found(&mut self) -> String {
        match self.rest().chars().next() {
            None => "the end".into(),
            Some(_) => {
                let word = self.peek_word();
                let rest = self.rest();
                format!("`{}`", if word.is_empty() { &rest[..rest.chars().next().map_or(0, char::len_utf8)] } else { word })
            }
        }
    }

    fn peek_word(&mut self) -> &'t str {
        let rest = self.rest();
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/');
        let end = rest.find(|c: char| !fine(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// A name; may hold `-` only where nothing can be subtracted.
    fn name(&mut self, dashes: bool) -> &'t str {
        let rest = self.rest();
        let fine = |c: char| c.is_alphanumeric() || c == '_' || (dashes && c == '-');
        let end = rest.find(|c: char| !fine(c)).unwrap_or(rest.len());
        if !rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return "";
        }
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Option<f64> {
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            let exponent_sign = matches!(c, '+' | '-') && at > 0 && matches!(rest.as_bytes()[at - 1], b'e' | b'E');
            let lead_sign = c == '-' && at == 0;
            if c.is_ascii_digit() || c == '.' || (matches!(c, 'e' | 'E') && at > 0) || exponent_sign || lead_sign {
                end = at + 1;
            } else {
                break;
            }
        }
        let number = rest[..end].parse().ok()?;
        self.at += end;
        Some(number)
    }

    fn sum(&mut self) -> Result<Expr, Mistake> {
        let mut left = self.product()?;
        loop {
            let operator = match self.rest().chars().next() {
                Some(c @ ('+' | '-')) => c,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr, Mistake> {
        let mut left = self.factor()?;
        loop {
            let operator = match self.rest().chars().next() {
                Some(c @ ('*' | '/')) => c,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expr, Mistake> {
        if self.take("(") {
            let inner = self.sum()?;
            self.expect(")", "the expression")?;
            return Ok(inner);
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let number = self.number().ok_or_else(|| self.wrong("this is not a number"))?;
            return Ok(Expr::Number(number));
        }
        if self.take("-") {
            return Ok(Expr::Negative(Box::new(self.factor()?)));
        }
        self.space();
        let at = self.at;
        let name = self.name(false);
        if name.is_empty() {
            let found = self.found();
            return Err(self.wrong(format!("expected a function or a number, found {found}")));
        }
        let all = FUNCTIONS.iter().chain(facts::FUNCTIONS);
        let Some(function) = all.clone().find(|function| function.name == name) else {
            let names: Vec<String> = all.map(|function| function.name.to_string()).collect();
            return Err(Mistake { at, message: format!("unknown function `{name}`{}", known(&names, name)) });
        };
        self.expect("(", &format!("`{name}`"))?;
        let args = self.args(function)?;
        self.expect(")", &format!("what `{name}` is given"))?;
        Ok(Expr::Call(Call { function, at, args }))
    }

    fn args(&mut self, function: &Function) -> Result<Args, Mistake> {
        Ok(match function.form {
            Form::Selection => Args::Selection(self.selection()?),
            Form::Share => {
                let selection = self.selection()?;
                let compare =
                    self.compare().ok_or_else(|| self.wrong("`share` needs a comparison, such as `share(cosine > 0)`"))?;
                let bound = self.number().ok_or_else(|| self.wrong("expected a number to compare with"))?;
                Args::Share(selection, compare, bound)
            }
            Form::Line => {
                let formula = self.formula(function.name)?;
                if formula.by.is_some() {
                    return Err(self.wrong("`slope` takes no `by`; name the column under `each`"));
                }
                Args::Formula(formula)
            }
            Form::Curve | Form::Curves => {
                let formula = self.curve(function.name)?;
                match (function.form, &formula.by) {
                    (Form::Curves, None) => {
                        let message = format!("`{}` compares curves; say over what, such as `~ lr by N`", function.name);
                        return Err(self.wrong(message));
                    }
                    (Form::Curve, Some(_)) => {
                        return Err(self.wrong(format!(
                            "`{}` takes one curve, and so no `by`; name the column under `each`",
                            function.name
                        )));
                    }
                    _ => Args::Formula(formula),
                }
            }
            Form::Regret => {
                let formula = self.curve(function.name)?;
                self.expect(",", "the curve of `regret`")?;
                if self.name(false) != "at" {
                    return Err(self.wrong("`regret` needs the learning rate it is measured at, such as `at = 2e-3`"));
                }
                self.expect("=", "`at`")?;
                Args::Regret(formula, Box::new(self.sum()?))
            }
            Form::Number => Args::Number(Box::new(self.sum()?)),
            Form::Fact => {
                let mut values: Vec<(String, f64)> = Vec::new();
                while !self.rest().starts_with(')') {
                    if !values.is_empty() {
                        self.expect(",", "an argument")?;
                    }
                    self.space();
                    let at = self.at;
                    let name = self.name(false).to_string();
                    let takes: Vec<String> = facts::arguments(function.name).iter().map(|(name, _)| name.to_string()).collect();
                    if !takes.contains(&name) {
                        let message = format!("`{}` takes no `{name}`{}", function.name, known(&takes, &name));
                        return Err(Mistake { at, message });
                    }
                    self.expect("=", &format!("`{name}`"))?;
                    let number = self.number().ok_or_else(|| self.wrong(format!("expected a number for `{name}`")))?;
                    values.push((name, number));
                }
                if let Some(missing) = facts::missing(function.name, &values) {
                    return Err(self.wrong(format!("`{}` needs `{missing} = ...`", function.name)));
                }
                Args::Fact(values)
            }
        })
    }

    /// A formula over the learning rate; `lr` is taken by its logarithm whether that is written or not.
    fn curve(&mut self, function: &str) -> Result<Formula, Mistake> {
        let formula = self.formula(function)?;
        if formula.log_y {
            return Err(self.wrong(format!("`{function}` takes the loss as it is, without `log`")));
        }
        Ok(formula)
    }

    fn formula(&mut self, function: &str) -> Result<Formula, Mistake> {
        let log_y = self.logarithm();
        let y = self.selection()?;
        if !self.take("~") {
            let found = self.found();
            return Err(self.wrong(format!("`{function}` needs what it varies over, such as `{} ~ N`, found {found}", y.metric)));
        }
        let log_x = self.logarithm();
        let x = self.column()?;
        let before = self.at;
        let by = if self.name(false) == "by" {
            Some(self.column()?)
        } else {
            self.at = before;
            None
        };
        Ok(Formula { y, log_y, x, log_x, by })
    }

    /// `log` in front of a name; `log` alone is a name.
    fn logarithm(&mut self) -> bool {
        let before = self.at;
        if self.name(false) == "log" && self.rest().starts_with(|c: char| c.is_alphabetic()) {
            return true;
        }
        self.at = before;
        false
    }

    fn column(&mut self) -> Result<String, Mistake> {
        self.space();
        let at = self.at;
        let column = self.name(false).to_string();
        check_column(&column).map_err(|message| Mistake { at, message })?;
        Ok(column)
    }

    fn selection(&mut self) -> Result<Selection, Mistake> {
        self.space();
        let at = self.at;
        let metric = self.name(true).to_string();
        if metric.is_empty() {
            let found = self.found();
            return Err(self.wrong(format!("expected the name of a metric, found {found}")));
        }
        let mut over = None;
        if self.take("/") {
            self.space();
            let at = self.at;
            let metric = self.name(true).to_string();
            if metric.is_empty() {
                let found = self.found();
                return Err(self.wrong(format!("expected the name of a metric after `/`, found {found}")));
            }
            over = Some((metric, at));
        }
        let mut conditions = Vec::new();
        if self.text[self.at..].starts_with('[') {
            self.at += 1;
            while !self.take("]") {
                if !conditions.is_empty() {
                    self.expect(",", "a condition")?;
                }
                conditions.push(self.condition()?);
            }
        }
        Ok(Selection { metric, over, at, conditions })
    }

    fn condition(&mut self) -> Result<Condition, Mistake> {
        let column = self.column()?;
        let at = self.at;
        let compare = self
            .compare()
            .ok_or_else(|| Mistake { at, message: format!("expected a comparison after `{column}`, such as `{column} = 1`") })?;
        let value = self.value(&column)?;
        check_order(&column, compare, &value).map_err(|message| Mistake { at, message })?;
        Ok(Condition { column, test: Test::Is(compare, value) })
    }

    fn compare(&mut self) -> Option<Compare> {
        let tokens = [
            ("!=", Compare::NotEqual),
            ("<=", Compare::AtMost),
            (">=", Compare::AtLeast),
            ("<", Compare::Below),
            (">", Compare::Above),
            ("==", Compare::Equal),
            ("=", Compare::Equal),
        ];
        tokens.into_iter().find(|(token, _)| self.take(token)).map(|(_, compare)| compare)
    }

    fn value(&mut self, column: &str) -> Result<Value, Mistake> {
        self.space();
        let at = self.at;
        let text = DIMENSIONS.iter().any(|dimension| dimension.name == column && dimension.kind == DimKind::Text);
        let word = self.peek_word();
        if word.is_empty() {
            let found = self.found();
            return Err(self.wrong(format!("expected a value for `{column}`, found {found}")));
        }
        let value = match (text, word) {
            (true, word) => Value::Text(word.to_string()),
            (false, "min" | "first") => Value::Smallest,
            (false, "max" | "last") => Value::Largest,
            (false, word) => match word.parse::<f64>() {
                Ok(number) => Value::Number(number),
                Err(_) if check_column(word).is_ok() => Value::Column(word.to_string()),
                Err(_) => {
                    let message = format!("`{column}` is a number; `{word}` is neither one, nor `min`, `max` or another column");
                    return Err(Mistake { at, message });
                }
            },
        };
        self.at += word.len();
        Ok(value)
    }
}

fn check_order(column: &str, compare: Compare, value: &Value) -> Result<(), String> {
    if matches!(value, Value::Text(_)) && !matches!(compare, Compare::Equal | Compare::NotEqual) {
        return Err(format!("`{column}` holds words, which are equal (`=`) or not (`!=`)"));
    }
    Ok(())
}

impl Expr {
    /// Every selection of the expression.
    pub fn selections(&self) -> Vec<&Selection> {
        match self {
            Expr::Number(_) => Vec::new(),
            Expr::Negative(inner) => inner.selections(),
            Expr::Binary(_, left, right) => [left.selections(), right.selections()].concat(),
            Expr::Call(call) => match &call.args {
                Args::Selection(selection) | Args::Share(selection, ..) => vec![selection],
                Args::Formula(formula) => vec![&formula.y],
                Args::Regret(formula, at) => [vec![&formula.y], at.selections()].concat(),
                Args::Number(inner) => inner.selections(),
                Args::Fact(_) => Vec::new(),
            },
        }
    }

    /// Whether some function in it satisfies a condition.
    pub fn any_function(&self, wanted: &dyn Fn(&Function) -> bool) -> bool {
        match self {
            Expr::Number(_) => false,
            Expr::Negative(inner) => inner.any_function(wanted),
            Expr::Binary(_, left, right) => left.any_function(wanted) || right.any_function(wanted),
            Expr::Call(call) => {
                wanted(call.function)
                    || match &call.args {
                        Args::Number(inner) => inner.any_function(wanted),
                        Args::Regret(_, at) => at.any_function(wanted),
                        _ => false,
                    }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_selections_and_arithmetic_are_read() {
        let Expr::Call(call) = parse("slope(log R ~ log N)").unwrap() else { panic!() };
        let Args::Formula(formula) = call.args else { panic!() };
        assert_eq!((formula.y.metric.as_str(), formula.log_y, formula.x.as_str(), formula.log_x), ("R", true, "N", true));
        let expr = parse("mean(cosine[j=8, rule=power-0.75]) / 2e-3 - -mean(cosine[visit=N, step=last])").unwrap();
        let conditions: Vec<_> = expr.selections().iter().flat_map(|s| s.conditions.clone()).map(|c| c.test).collect();
        assert_eq!(
            conditions,
            [
                Test::Is(Compare::Equal, Value::Number(8.0)),
                Test::Is(Compare::Equal, Value::Text("power-0.75".into())),
                Test::Is(Compare::Equal, Value::Column("N".into())),
                Test::Is(Compare::Equal, Value::Largest),
            ]
        );
        assert!(parse("regret(eval_loss ~ lr, at = argmin(eval_loss[N=1] ~ lr)) * 2").is_ok());
        assert!(parse("branch_scale(L = 24, N = 8) * sqrt(2) * 8").is_ok());
    }

    /// Every mistake of the expression language, with the byte it is at.
    #[test]
    fn mistakes_are_told_where_they_are() {
        for (text, at, message) in [
            ("slop(log R ~ log N)", 0, "unknown function `slop`; did you mean `slope`?"),
            ("slope(log R)", 11, "`slope` needs what it varies over, such as `R ~ N`, found `)`"),
            ("slope(R ~ M)", 10, "unknown column `M`; did you mean `L`?"),
            ("slope(R ~ N by d)", 16, "`slope` takes no `by`; name the column under `each`"),
            ("mean(R", 6, "expected `)` after what `mean` is given, found the end"),
            ("mean(R[stap=1])", 7, "unknown column `stap`; did you mean `step`?"),
            ("mean(R[step])", 11, "expected a comparison after `step`, such as `step = 1`"),
            ("mean(R[step=ten])", 12, "`step` is a number; `ten` is neither one, nor `min`, `max` or another column"),
            ("mean(R[rule<sqrt])", 11, "`rule` holds words, which are equal (`=`) or not (`!=`)"),
            ("mean R", 5, "expected `(` after `mean`, found `R`"),
            ("mean(R) 2", 8, "expected the end or an operator, found `2`"),
            ("", 0, "expected a function or a number, found the end"),
            ("mean(R / )", 9, "expected the name of a metric after `/`, found `)`"),
            ("mean()", 5, "expected the name of a metric, found `)`"),
            ("share(R)", 7, "`share` needs a comparison, such as `share(cosine > 0)`"),
            ("optimum_slope(eval_loss ~ lr)", 28, "`optimum_slope` compares curves; say over what, such as `~ lr by N`"),
            ("best(eval_loss ~ lr by N)", 24, "`best` takes one curve, and so no `by`; name the column under `each`"),
            ("regret(eval_loss ~ lr)", 21, "expected `,` after the curve of `regret`, found `)`"),
            ("regret(eval_loss ~ lr, 2)", 23, "`regret` needs the learning rate it is measured at, such as `at = 2e-3`"),
            ("parameters(M = 1)", 11, "`parameters` takes no `M`; did you mean `L`?"),
            ("parameters()", 11, "`parameters` needs `L = ...`"),
        ] {
            assert_eq!(parse(text), Err(Mistake { at, message: message.into() }), "{text}");
        }
    }
}
