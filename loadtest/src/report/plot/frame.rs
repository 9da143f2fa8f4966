//! What all plots share: size, colours, title, grid, legend.

use maud::{Markup, html};

use super::ruler::Tick;

/// Width of a plot, in pixels of its own.
pub(super) const WIDTH: f64 = 860.0;
/// Where the area of the numbers starts and ends from left to right.
pub(super) const LEFT: f64 = 78.0;
/// See [`LEFT`].
pub(super) const RIGHT: f64 = 824.0;
/// Size of ordinary text.
pub(super) const TEXT: f64 = 12.5;

const TITLE_BASE: f64 = 24.0;
const LEGEND_BASE: f64 = 48.0;
/// Width of a letter, near enough to place one legend entry after the other.
const LETTER: f64 = 6.9;

/// Legible on white (4.3 : 1) and on near-black (4.4 : 1).
const GREY: &str = "#747b85";

/// After Okabe and Ito, "Color universal design" (2008), moved to a middle lightness so that they
/// stand on light and dark pages.
const COLOURS: [&str; 6] = ["#2f86c6", "#d98200", "#0f9a74", "#b9629d", "#c9491c", "#6f7ad6"];

/// The second sign of each line; the first has none.
const DASHES: [&str; 4] = ["none", "7 4", "2 3", "10 3 2 3"];

/// The colour of the line or bar at this position.
pub(super) fn colour(position: usize) -> &'static str {
    COLOURS[position % COLOURS.len()]
}

/// The dash pattern of the line at this position.
pub(super) fn dash(position: usize) -> &'static str {
    DASHES[position % DASHES.len()]
}

/// A pixel as text: a tenth is enough.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// One entry of the legend.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) colour: &'static str,
    pub(super) dash: &'static str,
}

/// The whole picture around `inside`. It starts with its title, also for those who hear it read.
pub(super) fn picture(title: &str, height: f64, legend: &[Entry<'_>], inside: &Markup) -> String {
    let view = format!("0 0 {} {}", px(WIDTH), px(height));
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) width=(px(WIDTH)) height=(px(height))
            role="img" aria-label=(title) color=(GREY) fill="none" stroke-linejoin="round"
            font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size=(px(TEXT)) {
            title { (title) }
            text x=(px(LEFT)) y=(px(TITLE_BASE)) fill="currentColor" font-size="15" font-weight="600" { (title) }
            (legend_row(legend))
            (inside)
        }
    };
    markup.into_string()
}

fn legend_row(entries: &[Entry<'_>]) -> Markup {
    let mut left = LEFT;
    html! {
        @for entry in entries {
            @let start = left;
            @let width = 34.0 + entry.name.chars().count() as f64 * LETTER + 16.0;
            @let () = left += width;
            line x1=(px(start)) x2=(px(start + 26.0)) y1=(px(LEGEND_BASE - 4.0)) y2=(px(LEGEND_BASE - 4.0))
                stroke=(entry.colour) stroke-width="2.5" stroke-dasharray=(entry.dash) {}
            text x=(px(start + 32.0)) y=(px(LEGEND_BASE)) fill="currentColor" { (entry.name) }
        }
    }
}

/// Grid lines across, with their numbers on the left.
pub(super) fn rows(ticks: &[Tick]) -> Markup {
    html! {
        @for tick in ticks {
            (grid_line((LEFT, tick.at), (RIGHT, tick.at), tick))
            text x=(px(LEFT - 8.0)) y=(px(tick.at + 4.0)) fill="currentColor" text-anchor="end" { (tick.label) }
        }
    }
}

/// Grid lines from top to bottom, with their numbers below. A number that would touch the one
/// before it is left out.
pub(super) fn columns(ticks: &[Tick], (top, bottom): (f64, f64)) -> Markup {
    let mut free_from = f64::NEG_INFINITY;
    html! {
        @for tick in ticks {
            @let half = tick.label.chars().count() as f64 * LETTER / 2.0;
            @let fits = tick.at - half > free_from;
            @let () = if fits && !tick.label.is_empty() { free_from = tick.at + half + 6.0 };
            (grid_line((tick.at, top), (tick.at, bottom), tick))
            @if fits {
                text x=(px(tick.at)) y=(px(bottom + 18.0)) fill="currentColor" text-anchor="middle" { (tick.label) }
            }
        }
    }
}

fn grid_line(from: (f64, f64), to: (f64, f64), tick: &Tick) -> Markup {
    let opacity = if tick.label.is_empty() { "0.12" } else { "0.3" };
    html! {
        line x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1))
            stroke="currentColor" stroke-width="1" stroke-opacity=(opacity) {}
    }
}
