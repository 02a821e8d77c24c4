//! The terminal of `howdah top`: reads single keys and draws whole screens.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::time::Duration;
use unicode_width::UnicodeWidthChar as _;

/// Switches to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

const ESCAPE: u8 = 0x1b;
/// Maximum time between the bytes of one key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);

/// Parameters of the escape sequence that sets a style. Uses the terminal's sixteen colors, which suit light and dark
/// themes.
pub(super) mod style {
    pub(crate) const PLAIN: &str = "0";
    pub(crate) const BOLD: &str = "0;1";
    pub(crate) const DIM: &str = "0;2";
    pub(crate) const REVERSED: &str = "0;7";
    pub(crate) const RED: &str = "0;31";
    pub(crate) const GREEN: &str = "0;32";
    pub(crate) const YELLOW: &str = "0;33";
    pub(crate) const CYAN: &str = "0;36";
}

/// A line of the screen.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) text: String,
    style: &'static str,
    is_selected: bool,
}

impl Line {
    pub(super) fn new(text: String, style: &'static str) -> Self {
        Self { text, style, is_selected: false }
    }

    pub(super) fn empty() -> Self {
        Self::new(String::new(), style::PLAIN)
    }

    pub(super) fn styled(self, style: &'static str) -> Self {
        Self { style, ..self }
    }

    pub(super) fn selected(self) -> Self {
        Self { is_selected: true, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Escape,
    Interrupt,
    Char(char),
    Other,
}

/// A terminal in raw mode; dropping this restores its settings and its screen.
pub(super) struct Terminal {
    before: Termios,
    pressed: VecDeque<u8>,
}

impl Terminal {
    pub(super) fn take() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        let terminal = Self { before, pressed: VecDeque::new() };
        write(ENTER)?;
        Ok(terminal)
    }

    /// Returns columns and lines.
    pub(super) fn size() -> (u16, u16) {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }

    /// Draws a full screen.
    pub(super) fn show(lines: &[Line], width: u16) -> io::Result<()> {
        let mut bytes = String::new();
        for (at, line) in lines.iter().enumerate() {
            let selected = if line.is_selected { ";7" } else { "" };
            let text = fitted(&line.text, width);
            bytes.push_str(&format!("\x1b[{};1H\x1b[{}{selected}m{text}", at + 1, line.style));
        }
        write(&bytes)
    }

    /// Returns the next key; `None` if none was pressed within this time.
    pub(super) fn key(&mut self, within: Duration) -> io::Result<Option<Key>> {
        if self.pressed.is_empty() && !self.read(within)? {
            return Ok(None);
        }
        if self.pressed.len() == 1 && self.pressed[0] == ESCAPE {
            self.read(ESCAPE_TIMEOUT)?;
        }
        Ok(next_key(&mut self.pressed))
    }

    /// Returns `false` if nothing arrived.
    fn read(&mut self, within: Duration) -> io::Result<bool> {
        let within = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        let mut bytes = [0; 64];
        let input = stdin();
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&within)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            result => result?,
        };
        match rustix::io::read(stdin(), &mut bytes)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            n => {
                self.pressed.extend(&bytes[..n]);
                Ok(true)
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = write(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(bytes: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes.as_bytes())?;
    output.flush()
}

fn next_key(pressed: &mut VecDeque<u8>) -> Option<Key> {
    Some(match pressed.pop_front()? {
        ESCAPE if pressed.is_empty() => Key::Escape,
        ESCAPE => {
            let introduces = matches!(pressed.pop_front(), Some(b'[' | b'O'));
            // Parameters, up to the final letter.
            let ends = |byte: &u8| (0x40..=0x7e).contains(byte);
            let last = if introduces { pressed.iter().position(ends) } else { None };
            match last.and_then(|at| pressed.drain(..=at).next_back()) {
                Some(b'A') => Key::Up,
                Some(b'B') => Key::Down,
                _ => Key::Other,
            }
        }
        0x03 => Key::Interrupt,
        byte if byte.is_ascii_graphic() => Key::Char(byte.into()),
        _ => Key::Other,
    })
}

/// Pads or cuts a text to exactly this width, and removes control characters.
pub(super) fn fitted(text: &str, width: u16) -> String {
    let mut left = usize::from(width);
    let mut fitted = String::with_capacity(text.len().max(left));
    for (character, columns) in text.chars().filter_map(|character| Some((character, character.width()?))) {
        if columns > left {
            break;
        }
        fitted.push(character);
        left -= columns;
    }
    fitted.extend(std::iter::repeat_n(' ', left));
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut pressed: VecDeque<u8> = bytes.iter().copied().collect();
        std::iter::from_fn(|| next_key(&mut pressed)).collect()
    }

    #[test]
    fn keys_are_read_one_by_one() {
        assert_eq!(keys(b"qj\x1b[A\x1bOB\x03"), [Key::Char('q'), Key::Char('j'), Key::Up, Key::Down, Key::Interrupt]);
        // Ctrl with a key; Delete; Alt with a letter.
        assert_eq!(keys(b"\x1b[1;5Ay\x1b[3~\x1bq"), [Key::Up, Key::Char('y'), Key::Other, Key::Other]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys("é\r".as_bytes()), [Key::Other; 3]);
    }

    #[test]
    fn a_fitted_text_has_its_width_and_no_control_characters() {
        assert_eq!((fitted("abc", 5), fitted("abc", 2), fitted("", 1)), ("abc  ".into(), "ab".into(), " ".into()));
        assert_eq!((fitted("日本", 4), fitted("日本", 3)), ("日本".into(), "日 ".into()));
        assert_eq!(fitted("a\x1b[31m\u{9b}b\n", 6), "a[31mb");
    }
}
