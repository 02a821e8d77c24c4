//! All cases of the lab, in the order in which reports show them.

use super::{App, Case, Connections, Expect, Need, Protocol, mixed};

/// Size of the static file, in bytes.
pub const STATIC_BYTES: usize = 521 * 1024;

/// The small static file.
pub const SMALL_FILE: &str = "Hello, world!";

/// Size of responses from the upstream server, in bytes.
pub const UPSTREAM_BYTES: usize = 1024;

/// Rows of the table with a key.
pub const KEYED_ROWS: u32 = 100_000;

/// Rows of the small table that is read completely.
pub const SMALL_ROWS: u32 = 50;

fn html(body: impl Into<Vec<u8>>) -> Expect {
    Expect::Exactly { media_type: "text/html", body: body.into() }
}

fn lines_of_x() -> Vec<u8> {
    format!("{}\n", "x".repeat(1023)).repeat(50).into_bytes()
}

/// Returns the bytes of the static file: the same on every machine, and incompressible.
pub fn static_file() -> Vec<u8> {
    // The first bytes of a JPEG, so that content sniffing agrees with the file name.
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xe0];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while bytes.len() < STATIC_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(STATIC_BYTES);
    bytes
}

pub fn row_name(key: u32) -> String {
    format!("item-{key:06}-{:08x}", key.wrapping_mul(2_654_435_761))
}

/// Returns every case.
pub fn all() -> Vec<Case> {
    let mut cases = pages();
    cases.extend(coroutine_cases());
    cases.extend(tls());
    cases.extend(apps());
    cases.extend(mixed::cases());
    cases
}

/// Returns the cases that only published comparisons use: they are part of no suite.
pub fn of_articles() -> Vec<Case> {
    vec![Case {
        app: App::Heavy,
        path: "/api/v2/shop/products/lab-mug".into(),
        ..Case::script(
            "heavy-shop",
            "product of a heavy shop",
            "a JSON product with its variants, prices, taxes and translations through Symfony and Doctrine ORM on MariaDB",
            Expect::Containing {
                media_type: "application/json",
                words: vec!["\"code\":\"lab-mug\"".into(), "lab-mug-1\"".into(), "\"inStock\"".into()],
                at_least: 400,
            },
        )
        .load(100, 15)
        .needs(&[Need::MariaDb])
    }]
}

fn pages() -> Vec<Case> {
    let random = Expect::RandomLines { lines: 50, length: 1024 };
    vec![
        Case::script("hello", "hello", "echo of 13 bytes", html("Hello, world!")),
        Case::script("hello-c100", "hello, 100 connections", "echo of 13 bytes", html("Hello, world!"))
            .path("/hello.php")
            .load(100, 15),
        Case::script(
            "html",
            "HTML 50 KB",
            "50 lines of 1023 'x' as text/html: compresses to almost nothing",
            html(lines_of_x()),
        ),
        Case::script(
            "html-identity",
            "HTML 50 KB, identity",
            "the same page for a client that accepts no compression",
            html(lines_of_x()),
        )
        .path("/html.php")
        .identity(),
        Case::script(
            "pdf",
            "PDF 50 KB",
            "the same bytes as application/pdf, which servers do not compress",
            Expect::Exactly { media_type: "application/pdf", body: lines_of_x() },
        ),
        Case::script(
            "random",
            "random base64 50 KB",
            "50 lines of random base64 as text/html: hard to compress, different in every response",
            random.clone(),
        ),
        Case::script(
            "random-identity",
            "random base64 50 KB, identity",
            "the same for a client that accepts no compression: the cost without any compression",
            random,
        )
        .path("/random.php")
        .identity(),
        Case::script(
            "static",
            "static file 521 KB",
            "a file of 521 KiB that does not compress; no PHP runs",
            Expect::Exactly { media_type: "image/jpeg", body: static_file() },
        )
        .path("/photo.jpg"),
    ]
}

fn tls() -> Vec<Case> {
    let over =
        [(Protocol::Http1, "", "TLS"), (Protocol::Http2, "-http2", "HTTP/2"), (Protocol::Http3, "-http3", "HTTP/3")];
    let mut cases = Vec::new();
    for (what, path, about, expect) in [
        ("hello", "/hello.php", "echo of 13 bytes, TLS 1.3", html("Hello, world!")),
        (
            "static",
            "/photo.jpg",
            "a file of 521 KiB, TLS 1.3",
            Expect::Exactly { media_type: "image/jpeg", body: static_file() },
        ),
    ] {
        cases.extend(over.map(|(protocol, suffix, name)| {
            Case::script(&format!("tls-{what}{suffix}"), &format!("{what} over {name}"), about, expect.clone())
                .path(path)
                .over_tls(protocol, Connections::Kept)
        }));
    }
    let small = Expect::Exactly { media_type: "text/plain", body: SMALL_FILE.into() };
    cases.extend([
        Case::script(
            "tls-handshake",
            "full TLS handshakes",
            "a connection with a full handshake for each request for a file of 13 bytes",
            small.clone(),
        )
        .path("/hello.txt")
        .over_tls(Protocol::Http1, Connections::New),
        Case::script(
            "tls-resumed",
            "resumed TLS handshakes",
            "the same by clients that were there before and resume their session",
            small,
        )
        .path("/hello.txt")
        .over_tls(Protocol::Http1, Connections::Resumed),
        Case::script(
            "proxy",
            "forwarded to another server",
            "1 KiB from an upstream server, which computes nothing, over connections that stay open; no TLS, no PHP",
            Expect::Exactly { media_type: "text/plain", body: vec![b'x'; UPSTREAM_BYTES] },
        )
        .path("/behind")
        .identity()
        .needs(&[Need::Upstream]),
    ]);
    cases
}

fn coroutine_cases() -> Vec<Case> {
    let row = format!("{{\"id\":4711,\"name\":\"{}\"}}", row_name(4711));
    let json = |words: Vec<String>, at_least| Expect::Containing { media_type: "application/json", words, at_least };
    let mut usleep =
        Case::script("usleep", "wait 20 ms", "usleep(20000): the script waits and computes nothing", html("slept"))
            .load(100, 15);
    usleep.wait_ms = 20.0;
    let at_1000 = |case: &Case| Case {
        id: format!("{}-c1000", case.id),
        title: format!("{}, 1000 connections", case.title),
        ..case.clone().load(1000, 15)
    };
    let mut cases = vec![
        Case::script(
            "fibonacci",
            "Fibonacci(100)",
            "the 100th Fibonacci number in a loop",
            html("354224848179261997056"),
        )
        .load(100, 15),
        Case::script(
            "mysql-key",
            "one MySQL query by key",
            "one row of 100,000 by its primary key; a new connection per request where the runtime has no pool",
            Expect::Exactly { media_type: "application/json", body: row.clone().into_bytes() },
        )
        .load(100, 15)
        .needs(&[Need::MariaDb]),
        Case::script(
            "mysql-rows",
            "all rows of a table",
            "50 rows of a table as JSON",
            json(vec![row_name(1), row_name(SMALL_ROWS)], 1000),
        )
        .load(100, 15)
        .needs(&[Need::MariaDb]),
        Case::script(
            "complex",
            "3 MySQL queries, 2 Redis accesses",
            "3 queries, a Redis SET and GET, serialize and unserialize, arithmetic",
            json(vec![row_name(1), row_name(2), row_name(3), "\"sum\":".into(), "\"cached\":".into()], 200),
        )
        .load(100, 15)
        .needs(&[Need::MariaDb, Need::Redis]),
        usleep,
    ];
    let waiting = ["mysql-key", "complex", "usleep"];
    let many: Vec<Case> = cases.iter().filter(|case| waiting.contains(&case.id.as_str())).map(at_1000).collect();
    cases.extend(many);
    cases
}

fn apps() -> Vec<Case> {
    let shop = |id: &str, connections| Case {
        app: App::Shop,
        path: "/api/products/42".into(),
        ..Case::script(
            id,
            &format!("product API on Symfony, {connections} connections"),
            "a JSON product with its reviews through Symfony's kernel and Doctrine DBAL on MariaDB",
            Expect::Containing {
                media_type: "application/json",
                words: vec!["\"id\":42".into(), row_name(42), "\"reviews\":[".into()],
                at_least: 300,
            },
        )
        .load(connections, 15)
        .needs(&[Need::MariaDb])
    };
    let wordpress = Case {
        app: App::WordPress,
        path: "/".into(),
        ..Case::script(
            "wordpress",
            "WordPress front page",
            "the front page of a fresh WordPress with its default theme on MariaDB",
            Expect::Containing {
                media_type: "text/html",
                words: vec!["</html>".into(), "Howdah Lab".into()],
                at_least: 5_000,
            },
        )
        .needs(&[Need::MariaDb])
    };
    let orders = |id: &str, title: &str, about: &str, path: &str, media_type, words: &[&str], at_least| Case {
        app: App::Orders,
        path: path.into(),
        ..Case::script(
            id,
            title,
            about,
            Expect::Containing { media_type, words: words.iter().map(|word| (*word).to_owned()).collect(), at_least },
        )
    };
    let product = orders(
        "symfony-product",
        "small JSON API on Symfony",
        "a product of three fields, serialized by Symfony with a hundred routes; no validation, no database",
        "/api/products/42",
        "application/json",
        &["\"id\":42", "\"name\":\"product 42\"", "\"price\":142"],
        40,
    );
    let api = orders(
        "symfony-api",
        "JSON API on Symfony",
        "an order's summary, validated and serialized by Symfony with a hundred routes; no database",
        "/api/orders/42?currency=EUR",
        "application/json",
        &["\"total\":6130", "\"customer\":\"customer 42\"", "\"currency\":\"EUR\""],
        90,
    );
    let page = orders(
        "symfony-page",
        "page on Symfony",
        "the same order as a page by Twig; no database",
        "/api/orders/42/page",
        "text/html",
        &["Order 42 of customer 42", "61.30 EUR", "</html>"],
        500,
    );
    vec![
        shop("shop-api-c100", 100),
        shop("shop-api-c200", 200),
        product.clone(),
        product.with_jit(),
        api.clone(),
        api.with_jit(),
        page.clone(),
        page.with_jit(),
        wordpress.clone(),
        wordpress.with_jit(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<String> = all().into_iter().map(|case| case.id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn bodies_have_the_published_sizes() {
        assert_eq!(lines_of_x().len(), 51_200);
        assert_eq!(static_file().len(), 533_504);
    }
}
