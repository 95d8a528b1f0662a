//! Warm-up, stable, linear decay: the factor by which a step multiplies every learning rate.

/// Without warm-up and decay it is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub warmup_steps: u64,
    pub decay_steps: u64,
    pub steps: u64,
}

impl Schedule {
    /// Factor of the step with this index, counted from 0. Both ramps aim at 0 one step outside the run, so that neither
    /// the first nor the last step is spent on a learning rate of 0.
    pub fn factor(&self, step: u64) -> f64 {
        let left = self.steps.saturating_sub(step);
        if step < self.warmup_steps {
            (step + 1) as f64 / self.warmup_steps as f64
        } else if left < self.decay_steps {
            left as f64 / self.decay_steps as f64
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_schedule_has_500_warm_18500_stable_1000_decaying_steps() {
        let paper = Schedule { warmup_steps: 500, decay_steps: 1000, steps: 20_000 };
        assert_eq!(paper.factor(0), 1.0 / 500.0);
        assert_eq!(paper.factor(499), 1.0);
        assert_eq!(paper.factor(500), 1.0);
        assert_eq!(paper.factor(19_000), 1.0);
        assert_eq!(paper.factor(19_001), 0.999);
        assert_eq!(paper.factor(19_999), 0.001);
    }

    #[test]
    fn no_ramps_means_constant() {
        let constant = Schedule { warmup_steps: 0, decay_steps: 0, steps: 3 };
        assert_eq!([0, 1, 2].map(|s| constant.factor(s)), [1.0; 3]);
    }
}
