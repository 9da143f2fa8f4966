//! Lines over two axes.

use maud::html;

use super::Axis;
use super::frame::{Entry, LEFT, RIGHT, colour, columns, dash, picture, px, rows};
use super::ruler::{Headroom, Ruler};

/// A plot of one or more lines.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// Stands above it.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn, the first one on top.
    pub lines: Vec<Line>,
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// From left to right. A point that the axes cannot show (a zero on a logarithmic axis, a NaN)
    /// is a gap. What makes the points thins them: the picture has 760 pixels.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 380.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 318.0;

impl LinePlot {
    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = Ruler::over(&self.x, points().map(|point| point.0), (LEFT, RIGHT), Headroom::None);
        let y = Ruler::over(&self.y, points().map(|point| point.1), (BOTTOM, TOP), Headroom::Some);
        let entries: Vec<_> = (0..)
            .zip(&self.lines)
            .map(|(position, line)| Entry {
                name: &line.name,
                colour: colour(position),
                dash: dash(position),
            })
            .collect();
        let middle = (TOP + BOTTOM) / 2.0;
        let inside = html! {
            (rows(&y.ticks()))
            (columns(&x.ticks(), (TOP, BOTTOM)))
            @for (entry, line) in entries.iter().zip(&self.lines).rev() {
                path d=(path(line, &x, &y)) stroke=(entry.colour) stroke-dasharray=(entry.dash)
                    stroke-width="2" stroke-linecap="round" {}
            }
            text x=(px((LEFT + RIGHT) / 2.0)) y=(px(HEIGHT - 18.0)) fill="currentColor" text-anchor="middle" { (self.x.label) }
            text x="16" y=(px(middle)) fill="currentColor" text-anchor="middle"
                transform=(format!("rotate(-90 16 {})", px(middle))) { (self.y.label) }
        };
        picture(&self.title, HEIGHT, &entries, &inside)
    }
}

/// The line in SVG's path language. A point on its own becomes a dot: a stroke of no length with
/// round ends.
fn path(line: &Line, x: &Ruler, y: &Ruler) -> String {
    let mut path = String::new();
    let mut pen_is_down = false;
    for (horizontal, vertical) in &line.points {
        let (Some(left), Some(top)) = (x.at(*horizontal), y.at(*vertical)) else {
            pen_is_down = false;
            continue;
        };
        let place = format!("{} {}", px(left), px(top));
        match pen_is_down {
            true => path.push_str(&format!("L{place}")),
            false => path.push_str(&format!("M{place}h0")),
        }
        pen_is_down = true;
    }
    path
}
