//! Table layout for a terminal: visible columns, their widths, and cut texts.

use super::terminal::{Line, fitted, style};
use unicode_width::UnicodeWidthStr as _;

pub(super) struct Column {
    heading: &'static str,
    width: u16,
    /// Minimum width of the table at which the column is shown: the least important columns disappear first.
    from: u16,
}

impl Column {
    pub(super) const fn new(heading: &'static str, width: u16, from: u16) -> Self {
        Self { heading, width, from }
    }
}

/// The visible columns.
pub(super) struct Columns {
    /// Index among all columns, heading, width.
    shown: Vec<(usize, &'static str, u16)>,
}

impl Columns {
    /// The column at `wide` gets the rest of `width`, up to `most`.
    pub(super) fn fit(all: &[Column], width: u16, wide: usize, most: u16) -> Self {
        let there = all.iter().enumerate().filter(|(_, column)| column.from <= width);
        let mut shown: Vec<_> = there.map(|(at, column)| (at, column.heading, column.width)).collect();
        let gaps = shown.len().saturating_sub(1) as u16;
        let taken = shown.iter().map(|(.., width)| width).sum::<u16>() + gaps;
        if let Some((.., own)) = shown.iter_mut().find(|(at, ..)| *at == wide) {
            *own = (*own + width.saturating_sub(taken)).min(most.max(*own));
        }
        Self { shown }
    }

    /// Formats a row from the cells of all columns.
    pub(super) fn row<const N: usize>(&self, cells: [String; N]) -> Line {
        let cells = self.shown.iter().map(|(at, _, width)| fitted(&cut(&cells[*at], *width), *width));
        Line::new(cells.collect::<Vec<_>>().join(" "), style::PLAIN)
    }

    pub(super) fn head(&self) -> Line {
        let headings = self.shown.iter().map(|(_, heading, width)| fitted(heading, *width));
        Line::new(headings.collect::<Vec<_>>().join(" "), style::BOLD)
    }
}

/// Width of a text in terminal columns.
pub(super) fn wide(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// Cuts a text to a width; a cut text ends in `…`.
pub(super) fn cut(text: &str, width: u16) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let next = at + character.len_utf8();
        if wide(&text[..next]) >= width {
            break;
        }
        end = next;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_its_columns_end() {
        assert_eq!(cut("/index.php", 10), "/index.php");
        assert_eq!(cut("/index.php", 9), "/index.p…");
        assert_eq!(cut("日本語テキスト", 14), "日本語テキスト");
        // A wide character is never cut in half.
        assert_eq!((cut("日本語テキスト", 8), cut("日本語テキスト", 7)), ("日本語…".to_owned(), "日本語…".to_owned()));
        assert_eq!((cut("abc", 1), cut("", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn the_least_important_columns_are_dropped_first_and_one_gets_the_rest() {
        let all = [Column::new("A", 4, 0), Column::new("B", 6, 20), Column::new("C", 5, 0)];
        let widths = |width, most| -> Vec<_> {
            Columns::fit(&all, width, 0, most).shown.iter().map(|(at, _, width)| (*at, *width)).collect()
        };
        assert_eq!(widths(10, 99), [(0, 4), (2, 5)]);
        assert_eq!(widths(19, 99), [(0, 13), (2, 5)]);
        assert_eq!(widths(20, 99), [(0, 7), (1, 6), (2, 5)]);
        assert_eq!(widths(20, 5), [(0, 5), (1, 6), (2, 5)]);
    }
}
