//! Horizontal bars with ranges: who needs how much, and how sure that is.

use maud::{Markup, html};

use super::frame::{RIGHT, WIDTH, colour, columns, picture, px};
use super::ruler::{Headroom, Ruler};
use super::{Axis, Unit};

/// A plot of bars, from top to bottom in their own order.
#[derive(Clone, Debug)]
pub struct BarPlot {
    /// Stands above it.
    pub title: String,
    /// What the bars' length tells; linear from zero, else bars would lie.
    pub label: String,
    /// How the numbers are written.
    pub unit: Unit,
    /// What is drawn.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// On its left.
    pub name: String,
    /// Its length, such as the median of several rounds; negative numbers have none.
    pub value: f64,
    /// From where to where the value was seen, drawn as a line across the bar's end.
    pub range: Option<(f64, f64)>,
    /// Whether it is what the plot is about; the others are there to compare with.
    pub is_subject: bool,
}

const TOP: f64 = 44.0;
const ROW: f64 = 34.0;
const THICKNESS: f64 = 20.0;
/// Names start here and are cut off by nothing: the bars start to the right of the longest.
const NAMES_LEFT: f64 = 14.0;
const LETTER: f64 = 7.2;
const NAMES_WIDTH_MAX: f64 = 320.0;
/// For the number behind the longest bar.
const NUMBER_WIDTH: f64 = 84.0;

impl BarPlot {
    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let letters = self.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
        let left = NAMES_LEFT + (letters as f64 * LETTER).min(NAMES_WIDTH_MAX) + 12.0;
        let bottom = TOP + self.bars.len().max(1) as f64 * ROW;
        let axis = Axis::linear("", self.unit);
        let ends =
            self.bars.iter().flat_map(|bar| [bar.value, bar.range.map_or(0.0, |range| range.1)]);
        let ruler = Ruler::over(&axis, ends, (left, RIGHT - NUMBER_WIDTH), Headroom::None);
        let inside = html! {
            (columns(&ruler.ticks(), (TOP, bottom)))
            @for (position, bar) in self.bars.iter().enumerate() {
                (self.bar(bar, TOP + (position as f64 + 0.5) * ROW, left, &ruler))
            }
            text x=(px((left + WIDTH - NUMBER_WIDTH) / 2.0)) y=(px(bottom + 40.0)) fill="currentColor" text-anchor="middle" { (self.label) }
        };
        picture(&self.title, bottom + 54.0, &[], &inside)
    }

    fn bar(&self, bar: &Bar, middle: f64, left: f64, ruler: &Ruler) -> Markup {
        let end = ruler.at(bar.value.max(0.0)).unwrap_or(left);
        let range = bar.range.and_then(|(low, high)| Some((ruler.at(low)?, ruler.at(high)?)));
        let free = range.map_or(end, |(_, high)| high.max(end));
        let (colour, weight) =
            if bar.is_subject { (colour(0), "600") } else { ("currentColor", "400") };
        html! {
            text x=(px(left - 10.0)) y=(px(middle + 4.5)) fill="currentColor" text-anchor="end" font-weight=(weight) { (bar.name) }
            rect x=(px(left)) y=(px(middle - THICKNESS / 2.0)) width=(px((end - left).max(0.0))) height=(px(THICKNESS))
                rx="2" fill=(colour) fill-opacity=(if bar.is_subject { "0.95" } else { "0.5" }) {}
            @if let Some((low, high)) = range {
                path stroke="currentColor" stroke-width="1.5"
                    d=(format!("M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}v10M{high:.1} {0:.1}v10", middle - 5.0)) {}
            }
            text x=(px(free + 8.0)) y=(px(middle + 4.5)) fill="currentColor" font-weight=(weight) { (self.unit.text(bar.value)) }
        }
    }
}
