//! Lays out tables of text in columns, fitted to the width of a terminal.

use console::{Alignment, Style, measure_text_width, pad_str, truncate_str};

/// The number of spaces between columns.
const GAP: usize = 2;
/// The minimum width of the last column; if it has less, it is omitted.
const LAST_MIN: usize = 8;
/// The minimum width of a shrunk first or second column.
const SHRUNK_MIN: usize = 7;

/// A column: its heading, and whether its cells are numbers, which are aligned to the right.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) is_number: bool,
}

impl Column {
    pub(crate) const fn text(heading: &'static str) -> Column {
        Column { heading, is_number: false }
    }

    pub(crate) const fn number(heading: &'static str) -> Column {
        Column { heading, is_number: true }
    }
}

/// A cell: its text and style.
pub(crate) struct TableCell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl From<String> for TableCell {
    fn from(text: String) -> TableCell {
        TableCell { text, style: Style::new() }
    }
}

/// Returns the heading and the rows as lines of at most `width` columns. The last column has the rest of the width and
/// is truncated at its end. If there is no rest, the first column is truncated at its start, where ids are equal, then
/// the second.
pub(crate) fn lay_out(columns: &[Column], rows: &[Vec<TableCell>], width: usize) -> Vec<String> {
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            let widest = cells.map(|cell| measure_text_width(&cell.text)).max().unwrap_or(0);
            widest.max(column.heading.len())
        })
        .collect();
    fit(&mut widths, width);
    let heading: Vec<TableCell> = columns
        .iter()
        .map(|column| TableCell { text: column.heading.to_owned(), style: Style::new().dim() })
        .collect();
    let line = |row: &Vec<TableCell>| {
        let mut text = String::new();
        for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if *width == 0 {
                continue;
            }
            let is_number = columns.get(place).is_some_and(|column| column.is_number);
            let truncated = if place == 0 {
                truncate_start(&cell.text, *width)
            } else {
                truncate_str(&cell.text, *width, "…").into_owned()
            };
            let side = if is_number { Alignment::Right } else { Alignment::Left };
            let is_last = place + 1 == row.len();
            let padded = if is_last {
                truncated
            } else {
                pad_str(&truncated, *width, side, None).into_owned()
            };
            if place > 0 {
                text.push_str(&" ".repeat(GAP));
            }
            text.push_str(&cell.style.apply_to(padded).to_string());
        }
        text
    };
    std::iter::once(&heading).chain(rows).map(line).collect()
}

/// Shrinks the last column, then the first and the second, until the row fits.
fn fit(widths: &mut [usize], width: usize) {
    let Some(last) = widths.len().checked_sub(1) else { return };
    let room = width.saturating_sub(GAP * last);
    for (place, least) in [(last, LAST_MIN), (0, SHRUNK_MIN), (1, SHRUNK_MIN), (last, 0)] {
        let sum: usize = widths.iter().sum();
        let over = sum.saturating_sub(room);
        if let Some(column) = widths.get_mut(place)
            && over > 0
        {
            *column = column.saturating_sub(over).max(least.min(*column));
        }
    }
}

/// Truncates a text at its start: ids differ at their ends.
fn truncate_start(text: &str, width: usize) -> String {
    let over = measure_text_width(text).saturating_sub(width);
    if over == 0 {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(over + 1).collect();
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rows fit every width, and the end of ids stays readable. Method: lay out one row at many widths.
    #[test]
    fn rows_fit() {
        let columns = [
            Column::text("ID"),
            Column::text("AGENT"),
            Column::number("N"),
            Column::text("MESSAGE"),
        ];
        let cells = ["etl-s44we8-17.4", "agent-1", "12", "exit code 3, and more to say about it"];
        let rows =
            [cells.map(|text| TableCell::from(text.to_owned())).into_iter().collect::<Vec<_>>()];
        for width in 24..100 {
            let lines = lay_out(&columns, &rows, width);
            assert!(
                lines.iter().all(|line| measure_text_width(line) <= width),
                "{width}: {lines:?}"
            );
            assert!(lines[1].contains("17.4"), "{width}: {lines:?}");
        }
        assert_eq!(truncate_start("etl-s44we8-17.4", 6), "…-17.4");
    }
}
