//! Several concurrent HTTP/2 requests on one connection, with prior knowledge: just enough of RFC 9113 to prove that
//! the server multiplexes (Debian 12's curl cannot).

use crate::client::{Conn, Target};
use std::collections::BTreeMap;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 103`: a new entry with name 8 of the static table, its value Huffman-coded.
const STATUS_103: &[u8] = &[0x48, 0x82, 0x08, 0x19];

/// The response on one stream.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// True if the status was 200.
    pub ok: bool,
    pub body: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_else(|_| panic!("frame too long"));
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// An uncompressed header block: `:method: GET` and `:scheme: http` from the static table, the rest literal.
fn header_block(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    // Indexed names: 4 is `:path`, 1 is `:authority`. Values are short enough for a length of one byte.
    for (name, value) in [(4u8, path), (1, "localhost")] {
        block.push(name);
        block.push(
            u8::try_from(value.len()).ok().filter(|n| *n < 127).unwrap_or_else(|| panic!("{value:?} is too long")),
        );
        block.extend(value.as_bytes());
    }
    block
}

fn read_exactly(conn: &mut Conn, n: usize) -> Vec<u8> {
    (0..n).map(|_| conn.raw_byte().unwrap_or_else(|| panic!("the server closed the connection"))).collect()
}

/// Requests all paths at once over one connection; returns the responses in the order of the paths. `finished` is
/// called with a path's index when its response is complete.
pub fn get_all(target: &Target, paths: &[String], finished: impl FnMut(usize)) -> Vec<Answer> {
    get_all_with_hints(target, paths, |_| {}, finished)
}

/// As `get_all`; `hinted` is called with a path's index when a 103 has arrived for it, the first one on this
/// connection.
pub fn get_all_with_hints(
    target: &Target,
    paths: &[String],
    mut hinted: impl FnMut(usize),
    mut finished: impl FnMut(usize),
) -> Vec<Answer> {
    let mut conn = Conn::open_for(target, "h2");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &0x3fff_0000_u32.to_be_bytes()));
    let stream_of = |i: usize| u32::try_from(2 * i + 1).unwrap_or_else(|_| panic!("too many paths"));
    for (i, path) in paths.iter().enumerate() {
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream_of(i), &header_block(path)));
    }
    conn.send(bytes);
    let mut answers: BTreeMap<u32, Answer> = (0..paths.len()).map(|i| (stream_of(i), Answer::default())).collect();
    let mut open = paths.len();
    while open > 0 {
        let head = read_exactly(&mut conn, 9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = read_exactly(&mut conn, length);
        match head[3] {
            SETTINGS if head[4] & ACK == 0 => conn.send(frame(SETTINGS, ACK, 0, &[])),
            HEADERS if payload.starts_with(STATUS_103) => hinted(stream as usize / 2),
            // `:status: 200` is entry 8 of the static table and must come first.
            HEADERS => answers.entry(stream).or_default().ok = payload.first() == Some(&0x88),
            DATA => {
                answers.entry(stream).or_default().body.extend(&payload);
                if !payload.is_empty() {
                    conn.send(frame(WINDOW_UPDATE, 0, stream, &(length as u32).to_be_bytes()));
                }
            }
            // A server that shuts down still responds to earlier requests.
            GOAWAY if payload.get(4..8) == Some(&[0; 4]) => {}
            RST_STREAM | GOAWAY => panic!("the server gave up: {payload:?}"),
            _ => {}
        }
        if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0 {
            open -= 1;
            finished(stream as usize / 2);
        }
    }
    answers.into_values().collect()
}

/// Requests one path on a separate connection. `moved` is called with each part of the body. Returns the body, and the
/// code of the reset if the response ended early.
pub fn get_or_reset(target: &Target, path: &str, mut moved: impl FnMut(&[u8])) -> (Vec<u8>, Option<u32>) {
    let mut conn = Conn::open_for(target, "h2");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &header_block(path)));
    conn.send(bytes);
    let mut body = Vec::new();
    loop {
        let head = read_exactly(&mut conn, 9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = read_exactly(&mut conn, length);
        match head[3] {
            SETTINGS if head[4] & ACK == 0 => conn.send(frame(SETTINGS, ACK, 0, &[])),
            DATA => {
                body.extend(&payload);
                moved(&payload);
            }
            RST_STREAM => {
                let code = payload.try_into().map(u32::from_be_bytes);
                return (body, Some(code.unwrap_or_else(|_| panic!("a malformed reset"))));
            }
            GOAWAY => panic!("the server gave up: {payload:?}"),
            _ => {}
        }
        if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0 {
            return (body, None);
        }
    }
}

/// Settings that give every stream this window; the connection's window stays at 65,535 bytes.
fn preface(window: u32) -> Vec<u8> {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let setting = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &setting)].concat()
}

/// Opens a connection that requests a path `times` times at once and takes no byte of the responses: its streams have
/// no window. Returns an error if the server closes it in the meantime.
pub fn ask_without_window(target: &Target, path: &str, times: usize) -> std::io::Result<Conn> {
    let mut conn = Conn::try_open_for(target, "h2")?;
    let mut bytes = preface(0);
    for i in 0..times {
        let stream = u32::try_from(2 * i + 1).unwrap_or_else(|_| panic!("too many streams"));
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &header_block(path)));
    }
    conn.try_send(&bytes)?;
    Ok(conn)
}

/// Reads frames until the head of a response arrives.
pub fn read_until_a_response(conn: &mut Conn) {
    loop {
        let head = read_exactly(conn, 9);
        let _ = read_exactly(conn, u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize);
        if head[3] == HEADERS {
            return;
        }
    }
}

/// Allows the server to send this many more bytes on a stream.
pub fn give_window(conn: &mut Conn, stream: u32, bytes: u32) -> std::io::Result<()> {
    conn.try_send(&frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()))
}
