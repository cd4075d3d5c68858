//! Draws a plot as SVG: the frame, the axes, lines, areas, bars and marks. Colours are in the style sheet.

use super::html::escape;
use super::scale::Tick;

pub(super) const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 276.0;
pub(super) const LEFT: f64 = 56.0;
pub(super) const RIGHT: f64 = 18.0;
/// The height above the plot, for the unit and two rows of labels.
const TOP: f64 = 38.0;
const BOTTOM: f64 = 42.0;
/// The height of the strip between plot and labels, in which faults are marked.
const STRIP: f64 = 9.0;

/// A plot under construction.
pub(super) struct Canvas {
    svg: String,
    y_max: f64,
}

impl Canvas {
    /// Draws an empty frame. `label` is the text for screen readers; `hover` is the data for the script.
    pub(super) fn new(label: &str, y_unit: &str, y_ticks: &[Tick], hover: &str) -> Canvas {
        let hover = match hover {
            "" => String::new(),
            hover => format!(" tabindex=\"0\" data-hover=\"{}\"", escape(hover)),
        };
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\"{hover}>\n<text class=\"unit\" x=\"{LEFT}\" y=\"26\">{}</text>\n",
            escape(label),
            escape(y_unit)
        );
        let y_max = y_ticks.last().map_or(1.0, |(most, _)| *most);
        let mut canvas = Canvas { svg: String::new(), y_max };
        for (at, label) in y_ticks {
            let y = canvas.y(*at);
            let class = if *at == 0.0 { "base" } else { "grid" };
            svg.push_str(&format!(
                "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick y\" x=\"{:.0}\" y=\"{:.1}\">{label}</text>\n",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0
            ));
        }
        canvas.svg = svg;
        canvas
    }

    /// Converts a part (0 to 1) of the horizontal axis to an x coordinate.
    pub(super) fn x(&self, part: f64) -> f64 {
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        TOP + height * (1.0 - (value / self.y_max).clamp(0.0, 1.0))
    }

    /// Draws the labels of the horizontal axis, at parts of it.
    pub(super) fn x_ticks(&mut self, ticks: &[Tick]) {
        let y = HEIGHT - BOTTOM + STRIP;
        for (part, label) in ticks {
            let x = self.x(*part);
            self.svg.push_str(&format!(
                "<line class=\"base\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{:.0}\"/>\
                 <text class=\"tick x\" x=\"{x:.1}\" y=\"{:.0}\">{label}</text>\n",
                y + 4.0,
                y + 22.0
            ));
        }
    }

    /// Draws a line through points: each a part of the horizontal axis, and a value.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)], is_stepped: bool) {
        let path = self.path(points, is_stepped);
        self.svg.push_str(&format!("<path class=\"line {class}\" d=\"{path}\"/>\n"));
    }

    /// Fills the area under a line.
    pub(super) fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { return };
        let path = self.path(points, false);
        let floor = self.y(0.0);
        let first = self.x(*first);
        let last = self.x(*last);
        self.svg.push_str(&format!(
            "<path class=\"area {class}\" d=\"{path}L{last:.1} {floor:.1}L{first:.1} {floor:.1}Z\"/>\n"
        ));
    }

    fn path(&self, points: &[(f64, f64)], is_stepped: bool) -> String {
        let mut path = String::with_capacity(points.len() * 12);
        for (place, (part, value)) in points.iter().enumerate() {
            let x = self.x(*part);
            let y = self.y(*value);
            match (place, is_stepped) {
                (0, _) => path.push_str(&format!("M{x:.1} {y:.1}")),
                (_, true) => path.push_str(&format!("H{x:.1}V{y:.1}")),
                (_, false) => path.push_str(&format!("L{x:.1} {y:.1}")),
            }
        }
        path
    }

    /// Draws a bar from one part of the horizontal axis to another, with a gap to its neighbours.
    pub(super) fn bar(&mut self, from: f64, to: f64, value: f64, title: &str) {
        let left = self.x(from);
        let right = self.x(to);
        let gap = if right - left > 6.0 { 2.0 } else { 0.4 };
        let floor = self.y(0.0);
        let top = self.y(value).min(floor - 1.0);
        let width = (right - left - gap).max(0.6);
        let height = floor - top;
        let round = if width > 8.0 { 3.0 } else { 0.0 };
        self.svg.push_str(&format!(
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"{round}\"><title>{}</title></rect>\n",
            left + gap / 2.0,
            escape(title)
        ));
    }

    /// Draws a mark in the strip below the plot; `weight` (0 to 1) is its opacity.
    pub(super) fn mark(&mut self, from: f64, to: f64, weight: f64, title: &str) {
        let left = self.x(from);
        let right = self.x(to);
        self.svg.push_str(&format!(
            "<rect class=\"mark\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             opacity=\"{:.2}\"><title>{}</title></rect>\n",
            HEIGHT - BOTTOM + 1.5,
            (right - left - 0.5).max(1.5),
            STRIP - 2.0,
            0.35 + 0.65 * weight.clamp(0.0, 1.0),
            escape(title)
        ));
    }

    /// Draws a vertical line with a label in the first or second row, on the side that has room.
    pub(super) fn rule(&mut self, class: &str, part: f64, label: &str, row: u8) {
        let x = self.x(part);
        let y = if row == 0 { 12.0 } else { 28.0 };
        // Lines of the second row begin below the labels of the first, so labels of the second row stay further left.
        let left_from = if row == 0 { 0.7 } else { 0.35 };
        let (anchor, place) = if part > left_from { ("end", x - 4.0) } else { ("start", x + 4.0) };
        self.svg.push_str(&format!(
            "<line class=\"rule {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.0}\" y2=\"{:.0}\"/>\
             <text class=\"rule-label\" text-anchor=\"{anchor}\" x=\"{place:.1}\" y=\"{y:.0}\">{}</text>\n",
            y - 9.0,
            HEIGHT - BOTTOM,
            escape(label)
        ));
    }

    /// Returns the finished element.
    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}
