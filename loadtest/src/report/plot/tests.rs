use super::*;

fn line_plot(points: Vec<(f64, f64)>) -> LinePlot {
    LinePlot {
        title: "Latency <by> percentile & more".to_owned(),
        x: Axis::nines("percentile"),
        y: Axis::log("latency", Unit::Micros),
        lines: vec![Line { name: "a\"b".to_owned(), points }],
    }
}

/// The points of the plot's only path.
fn drawn(svg: &str) -> &str {
    let (_, rest) = svg.split_once("<path d=\"").unwrap();
    rest.split_once('"').unwrap().0
}

#[test]
fn a_plot_refers_to_nothing_outside_and_escapes_what_it_is_given() {
    let svg = line_plot(vec![(0.0, 100.0), (0.9, 1000.0)]).svg();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    assert!(svg.contains("<title>Latency &lt;by&gt; percentile &amp; more</title>"), "{svg}");
    assert!(svg.contains(">a&quot;b</text>"), "{svg}");
    assert_eq!(svg.matches("http").count(), 1, "the name space is no address that is fetched");
    for word in ["href", "url(", "<script", "<style", "NaN", "inf"] {
        assert!(!svg.contains(word), "{word}");
    }
    // What a line break or a void element without an end would break for XML readers.
    assert_eq!(svg.matches("<line ").count(), svg.matches("</line>").count());
    assert_eq!(svg.matches("<path ").count(), svg.matches("</path>").count());
}

#[test]
fn a_line_goes_up_where_its_numbers_grow_and_right_where_they_come_later() {
    let svg = line_plot(vec![(0.0, 100.0), (0.9, 1000.0), (1.0, 2000.0)]).svg();
    let path = drawn(&svg).replace("h0", "");
    let places: Vec<(f64, f64)> = path[1..]
        .split('L')
        .map(|place| {
            let (left, top) = place.split_once(' ').unwrap();
            (left.parse().unwrap(), top.parse().unwrap())
        })
        .collect();
    assert_eq!(places.len(), 3);
    assert!(
        places.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 > pair[1].1),
        "{places:?}"
    );
}

#[test]
fn a_point_that_an_axis_cannot_show_is_a_gap() {
    let svg =
        line_plot(vec![(0.1, 100.0), (0.2, 0.0), (0.3, 100.0), (0.4, f64::NAN), (0.5, 1.0)]).svg();
    assert_eq!(drawn(&svg).matches('M').count(), 3, "{svg}");
    assert!(!svg.contains("NaN"));
}

#[test]
fn a_bar_is_as_long_as_its_number_and_its_range_is_across_its_end() {
    let bar = |name: &str, value, range| Bar {
        name: name.to_owned(),
        value,
        range,
        is_subject: name == "router",
    };
    let plot = BarPlot {
        title: "CPU".to_owned(),
        label: "µs per request".to_owned(),
        unit: Unit::Number,
        bars: vec![
            bar("router", 10.0, Some((9.0, 12.0))),
            bar("other", 20.0, None),
            bar("none", f64::NAN, None),
        ],
    };
    let svg = plot.svg();
    let widths: Vec<f64> = svg
        .split("<rect ")
        .skip(1)
        .map(|rect| {
            rect.split_once("width=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        })
        .collect();
    assert_eq!(widths.len(), 3);
    assert!((widths[1] - 2.0 * widths[0]).abs() < 0.3, "{widths:?}");
    assert_eq!(widths[2], 0.0);
    assert_eq!(svg.matches("<path ").count(), 1);
}

#[test]
fn plots_without_any_numbers_are_plots() {
    let none = LinePlot { lines: vec![], ..line_plot(vec![]) };
    assert!(none.svg().ends_with("</svg>"));
    let bars =
        BarPlot { title: String::new(), label: String::new(), unit: Unit::Count, bars: vec![] };
    assert!(bars.svg().ends_with("</svg>"));
}
