//! Plots as SVG text: the one place that draws, for reports, pages and `bench-results/`.
//!
//! [`LinePlot`] has lines over two axes, [`BarPlot`] horizontal bars with ranges. Both stand on a
//! light or dark page alike: no background, a grey that is legible on both (a page may set its
//! own through the `color` of the `svg` element), colours that colour-blind people tell apart, and
//! a dash pattern for each line, so that no line is known by its colour alone. The text is
//! standalone XML as well as an element of an HTML page; it refers to nothing outside of itself.

pub mod bar;
mod frame;
pub mod line;
mod ruler;
mod unit;

pub use bar::{Bar, BarPlot};
pub use line::{Line, LinePlot};
pub use unit::Unit;

/// One side of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it tells, with its unit where the numbers along it do not carry one.
    pub label: String,
    /// How its numbers are written.
    pub unit: Unit,
    /// How they are spaced.
    pub scale: Scale,
}

/// How numbers are spaced along an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Each power of ten takes the same room. Only what is above zero is drawn.
    Log,
    /// For quantiles `0..=1`: each further nine takes the same room (90 %, 99 %, 99.9 % …), so that
    /// the tail is seen. 1 itself stands at the axis' end.
    Nines,
}

impl Axis {
    /// An axis with evenly spaced numbers from zero.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// An axis of powers of ten.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    /// An axis of quantiles that shows the tail.
    pub fn nines(label: impl Into<String>) -> Self {
        Self { label: label.into(), unit: Unit::Share, scale: Scale::Nines }
    }
}

#[cfg(test)]
mod tests;
