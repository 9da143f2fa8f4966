//! Where a number stands along an axis, and which numbers are written beside it.

use super::{Axis, Scale, Unit};

/// An axis that was laid over some pixels.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    scale: Scale,
    unit: Unit,
    /// In the scale's own measure: the number, its decimal logarithm, or its nines.
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// One grid line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where it stands, in pixels.
    pub(super) at: f64,
    /// What is written beside it; empty for a line between two labels.
    pub(super) label: String,
}

/// Room beyond the largest number, as a share of the axis.
#[derive(Clone, Copy, Debug)]
pub(super) enum Headroom {
    /// The axis ends where the numbers end.
    None,
    /// A line that peaks does not touch the frame.
    Some,
}

/// A quantile nearer to 1 than this has no place of its own.
const NINES_MAX: f64 = 9.0;

impl Ruler {
    /// Lays the axis over the pixels `from..to` so that all `values` find their place.
    pub(super) fn over(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        (from, to): (f64, f64),
        headroom: Headroom,
    ) -> Self {
        let scale = axis.scale;
        let measured = values.filter_map(|value| measure(scale, value));
        let (mut low, mut high) = measured
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = (0.0, 1.0); // nothing to show: an empty frame
        }
        if scale != Scale::Log {
            low = low.min(0.0);
        }
        if high - low < f64::EPSILON * high.abs().max(1.0) {
            high = low + if scale == Scale::Linear { low.abs().max(1.0) } else { 1.0 };
        }
        let room = match headroom {
            Headroom::None => 0.0,
            Headroom::Some => (high - low) * 0.06,
        };
        let below = if scale == Scale::Log { room } else { 0.0 };
        Self { scale, unit: axis.unit, low: low - below, high: high + room, from, to }
    }

    /// The pixel of a number; `None` for what the scale cannot show.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let measured = match self.scale {
            Scale::Nines if value >= 1.0 => self.high,
            scale => measure(scale, value)?,
        };
        Some(self.pixel(measured))
    }

    /// The grid lines, from low to high.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => self.log_ticks(),
            Scale::Nines => self.nines_ticks(),
        }
    }

    fn pixel(&self, measured: f64) -> f64 {
        let share = ((measured - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        let step = step(self.unit, (self.high - self.low) / 6.0);
        let first = (self.low / step).ceil();
        (0..)
            .map(|number| (first + f64::from(number)) * step)
            .take_while(|value| *value <= self.high + step * 1e-9)
            .map(|value| Tick { at: self.pixel(value), label: self.unit.text(value) })
            .collect()
    }

    fn log_ticks(&self) -> Vec<Tick> {
        let labelled: &[u32] = match self.high - self.low {
            span if span <= 1.3 => &[1, 2, 3, 5],
            span if span <= 3.2 => &[1, 2, 5],
            _ => &[1],
        };
        #[expect(clippy::cast_possible_truncation, reason = "powers of ten of a float: ±308")]
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let mut ticks = Vec::new();
        for decade in decades {
            for mantissa in 1..10_u32 {
                let value = f64::from(mantissa) * 10_f64.powi(decade);
                let measured = value.log10();
                if measured < self.low || measured > self.high {
                    continue;
                }
                let is_labelled = labelled.contains(&mantissa);
                let label = if is_labelled { self.unit.text(value) } else { String::new() };
                ticks.push(Tick { at: self.pixel(measured), label });
            }
        }
        ticks
    }

    fn nines_ticks(&self) -> Vec<Tick> {
        let quantiles =
            [0.0, 0.5].into_iter().chain((1..=9).map(|nines| 1.0 - 10_f64.powi(-nines)));
        quantiles
            .filter_map(|quantile| Some((measure(Scale::Nines, quantile)?, quantile)))
            .filter(|(measured, _)| *measured <= self.high + 1e-9)
            .map(|(measured, quantile)| Tick {
                at: self.pixel(measured),
                label: self.unit.text(quantile),
            })
            .collect()
    }
}

/// A number in the scale's own measure; `None` for what it cannot show.
fn measure(scale: Scale, value: f64) -> Option<f64> {
    let measured = match scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => value.log10(),
        Scale::Nines if (0.0..1.0).contains(&value) => (-(1.0 - value).log10()).min(NINES_MAX),
        Scale::Log | Scale::Nines => return None,
    };
    measured.is_finite().then_some(measured)
}

/// The smallest round number that is not below `least`.
fn step(unit: Unit, least: f64) -> f64 {
    if unit == Unit::Seconds && least > 1.0 {
        let clock = [2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0];
        let hours = (least / 3600.0).ceil() * 3600.0;
        return clock.into_iter().find(|step| *step >= least).unwrap_or(hours);
    }
    let power = 10_f64.powf(least.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    round.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let ruler = Ruler::over(axis, values.iter().copied(), (0.0, 100.0), Headroom::None);
        let ticks = ruler.ticks().into_iter();
        ticks.map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_in_the_axis_unit() {
        let linear = Axis::linear("", Unit::Count);
        assert_eq!(labels(&linear, &[0.0, 14_000.0]), ["0", "5 k", "10 k"]);
        let time = Axis::linear("", Unit::Seconds);
        assert_eq!(
            labels(&time, &[0.0, 150.0]),
            ["0", "30 s", "1 min", "1.5 min", "2 min", "2.5 min"]
        );
        let log = Axis::log("", Unit::Micros);
        assert_eq!(
            labels(&log, &[90.0, 12_000.0]),
            ["100 µs", "200 µs", "500 µs", "1 ms", "2 ms", "5 ms", "10 ms"]
        );
        let nines = Axis::nines("");
        assert_eq!(
            labels(&nines, &[0.0, 0.5, 0.9995, 1.0]),
            ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
        );
    }

    #[test]
    fn each_nine_takes_the_same_room_and_all_of_them_ends_the_axis() {
        let quantiles = [0.0, 0.9, 0.99, 0.999];
        let ruler =
            Ruler::over(&Axis::nines(""), quantiles.into_iter(), (0.0, 300.0), Headroom::None);
        for (quantile, pixel) in
            [(0.0, 0.0), (0.9, 100.0), (0.99, 200.0), (0.999, 300.0), (1.0, 300.0)]
        {
            let at = ruler.at(quantile).unwrap();
            assert!((at - pixel).abs() < 1e-6, "{quantile}: {at}");
        }
    }

    #[test]
    fn what_a_scale_cannot_show_has_no_place() {
        let log = Ruler::over(
            &Axis::log("", Unit::Number),
            [1.0].into_iter(),
            (0.0, 1.0),
            Headroom::Some,
        );
        assert_eq!((log.at(0.0), log.at(-1.0), log.at(f64::NAN)), (None, None, None));
        assert!(log.at(1.0).is_some());
    }

    #[test]
    fn nothing_at_all_makes_an_empty_frame() {
        for axis in [Axis::linear("", Unit::Number), Axis::log("", Unit::Number), Axis::nines("")] {
            let ruler = Ruler::over(&axis, [f64::NAN].into_iter(), (0.0, 1.0), Headroom::Some);
            assert!(!ruler.ticks().is_empty(), "{axis:?}");
        }
    }
}
