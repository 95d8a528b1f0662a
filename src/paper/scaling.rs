//! The parameterisation as one table: role of a parameter x scaling rule -> init, learning rate, decay, Adam epsilon; and the
//! scale of the residual branches. Nothing else in the crate knows a scaling law.
// L depth of the stack, N loops, m_L = L / reference depth

/// How residual branches shrink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// 1
    None,
    /// 1 / sqrt(N)
    Sqrt,
    /// 1 / N
    Linear,
    /// lambda / (N sqrt(m_L)), with the depth corrections of learning rate and epsilon that go with it.
    Factorised { lambda: f64 },
    /// N^-alpha
    Power { alpha: f64 },
}

/// What a parameter is for. Every parameter of the model has exactly one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The token embedding, which is also the unembedding.
    Embedding,
    /// The gain of a norm inside a block.
    BlockNorm,
    /// A matrix of a block.
    Hidden,
    /// The gain of the norm before the head.
    FinalNorm,
}

/// The base values, tuned at L = reference depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    pub lr: f64,
    pub std: f64,
    /// Equal to `std` in the paper; reduced widths scale it with 1/sqrt(d).
    pub hidden_std: f64,
    pub weight_decay: f64,
    pub eps: f64,
    /// Where initial values are cut, in standard deviations.
    pub truncate: f64,
    /// Whether norm gains decay too.
    pub decay_norms: bool,
}

/// A rule applied to a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    pub rule: Rule,
    /// N
    pub loops: usize,
    /// m_L
    pub depth_multiplier: f64,
    pub base: Base,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Cut at `cut` standard deviations, not rescaled.
    TruncatedNormal { std: f64, cut: f64 },
    /// The table's "init variance" of a norm cannot mean random gains around zero.
    Ones,
}

/// How one parameter is initialised and trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    pub init: Init,
    /// Peak learning rate; the schedule multiplies it.
    pub lr: f64,
    pub weight_decay: f64,
    pub eps: f64,
}

impl Scaling {
    /// Table "Depth-loop parameterization", by row. Norm gains do not decay unless asked to.
    pub fn group(&self, role: Role) -> Group {
        let Base { lr, std, hidden_std, weight_decay, eps, truncate: cut, decay_norms } = self.base;
        let norm_decay = if decay_norms { weight_decay } else { 0.0 };
        let depth = match self.rule {
            Rule::None | Rule::Sqrt | Rule::Linear | Rule::Power { .. } => 1.0,
            Rule::Factorised { .. } => self.depth_multiplier.powf(-0.5),
        };
        match role {
            Role::Embedding => Group { init: Init::TruncatedNormal { std, cut }, lr, weight_decay, eps },
            Role::BlockNorm => Group { init: Init::Ones, lr: lr * depth, weight_decay: norm_decay, eps: eps * depth },
            Role::Hidden => {
                Group { init: Init::TruncatedNormal { std: hidden_std, cut }, lr: lr * depth, weight_decay, eps: eps * depth }
            }
            Role::FinalNorm => Group { init: Init::Ones, lr, weight_decay: norm_decay, eps },
        }
    }

    /// The factor of every residual branch, attention and feed-forward alike.
    pub fn branch_scale(&self) -> f64 {
        self.rule.branch_scale(self.loops, self.depth_multiplier)
    }
}

impl Rule {
    /// The factor of a residual branch at N loops of a stack with this m_L.
    pub fn branch_scale(self, loops: usize, depth_multiplier: f64) -> f64 {
        let n = loops as f64;
        match self {
            Rule::None => 1.0,
            Rule::Sqrt => 1.0 / n.sqrt(),
            Rule::Linear => 1.0 / n,
            Rule::Factorised { lambda } => lambda / n * depth_multiplier.powf(-0.5),
            Rule::Power { alpha } => n.powf(-alpha),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Base =
        Base { lr: 1.25e-3, std: 0.02, hidden_std: 0.02, weight_decay: 0.1, eps: 1e-8, truncate: 3.0, decay_norms: false };

    fn scaling(rule: Rule, depth: usize, loops: usize) -> Scaling {
        Scaling { rule, loops, depth_multiplier: depth as f64 / 12.0, base: BASE }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-4 * b.abs() // the paper's values are printed to four digits
    }

    #[test]
    fn branch_scales_are_those_of_the_papers_grid() {
        let rule = Rule::Factorised { lambda: 1.0 };
        for (depth, at_one) in [(12, 1.0), (24, 0.5_f64.sqrt()), (48, 0.5)] {
            for loops in [1, 2, 4, 8] {
                let n = loops as f64;
                assert!(close(scaling(rule, depth, loops).branch_scale(), at_one / n));
                assert!(close(scaling(Rule::None, depth, loops).branch_scale(), 1.0));
                assert!(close(scaling(Rule::Sqrt, depth, loops).branch_scale(), 1.0 / n.sqrt()));
                assert!(close(scaling(Rule::Linear, depth, loops).branch_scale(), 1.0 / n));
                assert!(close(scaling(Rule::Power { alpha: 0.75 }, depth, loops).branch_scale(), n.powf(-0.75)));
            }
        }
    }

    #[test]
    fn each_row_of_the_table_for_every_depth_and_loop_count() {
        for (depth, lr, eps) in [(12, 1.25e-3, 1e-8), (24, 8.839e-4, 7.0711e-9), (48, 6.25e-4, 5e-9)] {
            for loops in [1, 2, 4, 8] {
                let table = scaling(Rule::Factorised { lambda: 1.0 }, depth, loops);
                let embedding = table.group(Role::Embedding);
                assert_eq!(embedding.init, Init::TruncatedNormal { std: 0.02, cut: 3.0 });
                assert_eq!((embedding.lr, embedding.weight_decay, embedding.eps), (1.25e-3, 0.1, 1e-8));
                let norm = table.group(Role::BlockNorm);
                assert_eq!((norm.init, norm.weight_decay), (Init::Ones, 0.0));
                assert!(close(norm.lr, lr) && close(norm.eps, eps));
                let hidden = table.group(Role::Hidden);
                assert_eq!((hidden.init, hidden.weight_decay), (Init::TruncatedNormal { std: 0.02, cut: 3.0 }, 0.1));
                assert!(close(hidden.lr, lr) && close(hidden.eps, eps));
                let last = table.group(Role::FinalNorm);
                assert_eq!((last.init, last.lr, last.weight_decay, last.eps), (Init::Ones, 1.25e-3, 0.0, 1e-8));
            }
        }
    }

    #[test]
    fn rules_of_the_loop_alone_leave_learning_rates_alone() {
        for rule in [Rule::None, Rule::Sqrt, Rule::Linear, Rule::Power { alpha: 0.3 }] {
            for role in [Role::Embedding, Role::BlockNorm, Role::Hidden, Role::FinalNorm] {
                let group = scaling(rule, 48, 8).group(role);
                assert_eq!((group.lr, group.eps), (1.25e-3, 1e-8));
            }
        }
    }

    #[test]
    fn at_the_reference_point_every_rule_is_exactly_one() {
        let rules = [Rule::Sqrt, Rule::Linear, Rule::Factorised { lambda: 1.0 }, Rule::Power { alpha: 0.7 }];
        for rule in rules {
            let table = scaling(rule, 12, 1);
            assert_eq!(table.branch_scale(), 1.0);
            assert_eq!(table.group(Role::Hidden), scaling(Rule::None, 12, 1).group(Role::Hidden));
        }
    }
}
