//! The access log format of pools under `howdah-fpm`: PHP-FPM's `access.format` and `access.suppress_path`.

/// Format and exceptions of an access log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FpmAccess {
    pub format: Vec<FpmField>,
    /// Paths whose successful, plain requests are not logged.
    pub suppressed: Vec<String>,
}

/// A part of a log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FpmField {
    Text(String),
    /// `%C`: processor time in percent of the request's time.
    Cpu(CpuTime),
    /// `%d`: time taken.
    Duration(TimeUnit),
    /// `%e`: a variable of the request.
    Variable(String),
    /// `%f`: the script.
    Script,
    /// `%l`: bytes of the request's body.
    Length,
    /// `%m`: the method.
    Method,
    /// `%M`: peak memory, in units of this many bytes.
    Memory(u64),
    /// `%n`: the pool.
    Pool,
    /// `%o`: a field of the response.
    Header(String),
    /// `%p`, `%P`: the process and its parent.
    Process,
    Parent,
    /// `%q`, `%Q`: the query, and the question mark before it.
    Query,
    QueryMark,
    /// `%r`: the path.
    Path,
    /// `%R`: the address of the web server.
    Remote,
    /// `%s`: the status.
    Status,
    /// `%t`, `%T`: when the request began and when it ended, with a strftime(3) format.
    Begun(String),
    Ended(String),
    /// `%u`: the user.
    User,
}

/// A part of the processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuTime {
    Total,
    User,
    System,
}

/// The unit of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
}

/// PHP-FPM's default format of times.
const TIME: &str = "%d/%b/%Y:%H:%M:%S %z";

impl FpmAccess {
    /// Parses `access.format`.
    ///
    /// # Errors
    /// A conversion that PHP-FPM does not have.
    pub fn parse(format: &str, suppressed: Vec<String>) -> Result<Self, String> {
        let mut fields = Vec::new();
        let mut rest = format;
        while let Some((before, token)) = rest.split_once('%') {
            push_text(&mut fields, before);
            let (argument, token) = match token.strip_prefix('{') {
                None => (None, token),
                Some(inside) => {
                    let (argument, token) = inside.split_once('}').ok_or_else(|| format!("%{token}: no }}"))?;
                    (Some(argument), token)
                }
            };
            let letter = token.chars().next().ok_or("a % at the end")?;
            if letter == '%' && argument.is_none() {
                push_text(&mut fields, "%");
            } else {
                let shown = || format!("%{}{letter}", argument.map_or_else(String::new, |text| format!("{{{text}}}")));
                fields.push(field(letter, argument).ok_or_else(|| format!("invalid token {}", shown()))?);
            }
            rest = &token[letter.len_utf8()..];
        }
        push_text(&mut fields, rest);
        Ok(Self { format: fields, suppressed })
    }

    /// `true` if lines contain the processor time or the memory that a request used.
    pub fn needs_usage(&self) -> bool {
        self.format.iter().any(|field| matches!(field, FpmField::Cpu(_) | FpmField::Memory(_)))
    }

    /// `true` if lines contain response headers.
    pub fn needs_headers(&self) -> bool {
        self.format.iter().any(|field| matches!(field, FpmField::Header(_)))
    }
}

fn push_text(fields: &mut Vec<FpmField>, text: &str) {
    match fields.last_mut() {
        _ if text.is_empty() => {}
        Some(FpmField::Text(before)) => before.push_str(text),
        _ => fields.push(FpmField::Text(text.to_owned())),
    }
}

fn field(letter: char, argument: Option<&str>) -> Option<FpmField> {
    let named = || argument.filter(|name| !name.is_empty()).map(str::to_owned);
    let time = || argument.unwrap_or(TIME).to_owned();
    Some(match (letter, argument) {
        ('C', None | Some("total")) => FpmField::Cpu(CpuTime::Total),
        ('C', Some("user")) => FpmField::Cpu(CpuTime::User),
        ('C', Some("system")) => FpmField::Cpu(CpuTime::System),
        ('d', None | Some("seconds")) => FpmField::Duration(TimeUnit::Seconds),
        ('d', Some("milliseconds" | "milli")) => FpmField::Duration(TimeUnit::Milliseconds),
        ('d', Some("microseconds" | "micro")) => FpmField::Duration(TimeUnit::Microseconds),
        ('e', _) => FpmField::Variable(named()?),
        ('o', _) => FpmField::Header(named()?),
        ('M', None | Some("bytes")) => FpmField::Memory(1),
        ('M', Some("kilobytes" | "kilo")) => FpmField::Memory(1 << 10),
        ('M', Some("megabytes" | "mega")) => FpmField::Memory(1 << 20),
        ('t', _) => FpmField::Begun(time()),
        ('T', _) => FpmField::Ended(time()),
        ('f', None) => FpmField::Script,
        ('l', None) => FpmField::Length,
        ('m', None) => FpmField::Method,
        ('n', None) => FpmField::Pool,
        ('p', None) => FpmField::Process,
        ('P', None) => FpmField::Parent,
        ('q', None) => FpmField::Query,
        ('Q', None) => FpmField::QueryMark,
        ('r', None) => FpmField::Path,
        ('R', None) => FpmField::Remote,
        ('s', None) => FpmField::Status,
        ('u', None) => FpmField::User,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed_as_php_fpm_does() {
        let of = |format: &str| FpmAccess::parse(format, Vec::new()).map(|access| access.format);
        assert_eq!(
            of("100%% %R %{milli}d%{X}e"),
            Ok(vec![
                FpmField::Text("100% ".to_owned()),
                FpmField::Remote,
                FpmField::Text(" ".to_owned()),
                FpmField::Duration(TimeUnit::Milliseconds),
                FpmField::Variable("X".to_owned()),
            ])
        );
        assert_eq!(of("%{%Y}t"), Ok(vec![FpmField::Begun("%Y".to_owned())]));
        assert_eq!(of(""), Ok(Vec::new()));
        for (wrong, why) in [
            ("%Y", "invalid token %Y"),
            ("%e", "invalid token %e"),
            ("%{hours}d", "invalid token %{hours}d"),
            ("%{a", "no }"),
            ("x%", "a % at the end"),
        ] {
            assert!(of(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }
}
