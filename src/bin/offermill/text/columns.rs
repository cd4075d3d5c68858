//! Lays out tables of text in columns, fitted to the width of a terminal.

use console::{Alignment, Style, measure_text_width, pad_str, truncate_str};

use crate::text::format::printable;
use crate::text::styled::StyledText;

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

/// A cell: its text, which is printable, and its style.
pub(crate) struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    /// A cell with any text.
    pub(crate) fn new(text: &str, style: Style) -> TableCell {
        TableCell { text: printable(text), style }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        TableCell::new(text, Style::new())
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> TableCell {
        text.as_str().into()
    }
}

/// Returns the heading and the rows as lines of at most `width` columns. The last column has the rest of the width and
/// is truncated at its end. If there is no rest, the first column is truncated at its start, where ids are equal, then
/// the second.
pub(crate) fn lay_out(
    columns: &[Column],
    rows: &[Vec<TableCell>],
    width: usize,
) -> Vec<StyledText> {
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
    let heading: Vec<TableCell> =
        columns.iter().map(|column| TableCell::new(column.heading, Style::new().dim())).collect();
    let line = |row: &Vec<TableCell>| {
        let mut text = StyledText::new();
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
                text.append(&StyledText::plain(&" ".repeat(GAP)));
            }
            text.append(&StyledText::styled(&padded, &cell.style));
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
    // The mark takes one column, and a wide character may leave one more than is needed.
    let mut dropped = 0;
    let rest = text.char_indices().find(|(at, c)| {
        let is_enough = dropped > over;
        dropped += measure_text_width(text.get(*at..*at + c.len_utf8()).unwrap_or_default());
        is_enough
    });
    format!("…{}", rest.and_then(|(at, _)| text.get(at..)).unwrap_or_default())
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
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            assert!(lines[1].as_str().contains("17.4"), "{width}: {lines:?}");
        }
        assert_eq!(truncate_start("etl-s44we8-17.4", 6), "…-17.4");
        assert_eq!([5, 6].map(|width| truncate_start("名前名前", width)), ["…名前", "…名前"]);
    }

    /// Goal: columns stay aligned, and lines single lines, whatever the cells contain. Method: a host name with codes
    /// of a terminal and one of wide characters, at many widths.
    #[test]
    fn foreign_cells_keep_the_columns() {
        let columns = [Column::text("ID"), Column::text("AGENT"), Column::number("N")];
        let row = |host: &str| ["etl-1", host, "1"].into_iter().map(TableCell::from).collect();
        let rows: Vec<Vec<TableCell>> = vec![row("\u{1b}[2J\n\u{7}"), row("名前.example")];
        for width in 24..60 {
            let lines = lay_out(&columns, &rows, width);
            assert_eq!(lines.len(), 3);
            let widths: Vec<usize> = lines.iter().map(StyledText::width).collect();
            assert!(widths.iter().all(|it| *it == widths[0] && *it <= width), "{lines:?}");
            assert!(
                !lines.iter().any(|line| line.as_str().contains(char::is_control)),
                "{lines:?}"
            );
        }
    }
}
