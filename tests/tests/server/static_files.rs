//! Static files: types, validators, ranges, precompressed variants, and files that must never be sent.

use howdah_tests::{Request, Site, scenario};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

fn set_age(site: &Site, file: &str, seconds: u64) {
    let file = std::fs::File::options().write(true).open(site.file(file)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

scenario!(
    types_follow_the_extension,
    |s| ["html", "css", "js", "json", "svg", "png", "jpg", "txt", "xml", "woff2", "pdf", "webp", "mp4", "ico", "zip"]
        .iter()
        .fold(s, |s, ext| s.file(&format!("f.{ext}"), "content"))
        .file("noext", "content")
        .file("UPPER.HTML", "x"),
    |site| {
        let expected = [
            ("html", "text/html"),
            ("css", "text/css"),
            ("js", "javascript"),
            ("json", "application/json"),
            ("svg", "image/svg+xml"),
            ("png", "image/png"),
            ("jpg", "image/jpeg"),
            ("txt", "text/plain"),
            ("xml", "xml"),
            ("woff2", "font/woff2"),
            ("pdf", "application/pdf"),
            ("webp", "image/webp"),
            ("mp4", "video/mp4"),
            ("ico", "icon"),
            ("zip", "application/zip"),
        ];
        for (ext, part) in expected {
            let response = site.get(&format!("/f.{ext}")).expect(200);
            let content_type = response.header("content-type").unwrap_or_default();
            assert!(content_type.contains(part), "{ext}: {content_type}");
            assert_eq!(response.text(), "content");
        }
        assert_eq!(site.get("/noext").header("content-type"), Some("application/octet-stream"));
    },
);

scenario!(validators_answer_304, |s| s.file("f.txt", "0123456789"), |site| {
    set_age(site, "f.txt", 1_600_000_000);
    let first = site.get("/f.txt").expect(200);
    let etag = first.header("etag").expect("ETag").to_owned();
    let date = "Sun, 13 Sep 2020 12:26:40 GMT";
    assert_eq!(first.header("last-modified"), Some(date));
    assert_eq!(first.header("accept-ranges"), Some("bytes"));
    let ask = |name: &str, value: &str| site.send(&Request::get("/f.txt").header(name, value));
    for (name, value, status) in [
        ("If-None-Match", etag.as_str(), 304),
        ("If-None-Match", "*", 304),
        ("If-None-Match", "\"other\"", 200),
        ("If-Modified-Since", date, 304),
        ("If-Modified-Since", "Sun, 13 Sep 2020 12:26:39 GMT", 200),
        ("If-Modified-Since", "nonsense", 200),
        ("If-Match", etag.as_str(), 200),
        ("If-Match", "\"other\"", 412),
        ("If-Unmodified-Since", date, 200),
        ("If-Unmodified-Since", "Sun, 13 Sep 2020 12:26:39 GMT", 412),
    ] {
        let response = ask(name, value);
        assert_eq!(response.status, status, "{name}: {value}");
        assert!(
            status != 304 || (response.body.is_empty() && response.header("etag") == Some(etag.as_str())),
            "{response:?}"
        );
    }
    assert_eq!(ask("If-None-Match", &format!("\"a\", W/{etag}, \"b\"")).status, 304);
    let both =
        site.send(&Request::get("/f.txt").header("If-None-Match", "\"other\"").header("If-Modified-Since", date));
    assert_eq!(both.status, 200, "If-None-Match wins over If-Modified-Since");
});

scenario!(a_changed_file_has_a_new_etag, |s| s.file("f.txt", "one"), |site| {
    let before = site.get("/f.txt").expect(200);
    howdah_tests::site::replace_file(&site.file("f.txt"), "three");
    set_age(site, "f.txt", 1_700_000_000);
    assert_eq!(site.get("/f.txt").expect(200).text(), "three");
    assert_ne!(before.header("etag"), site.get("/f.txt").header("etag"));
});

scenario!(single_ranges_are_sent, |s| s.file("f.txt", "0123456789"), |site| {
    let etag = site.get("/f.txt").header("etag").unwrap().to_owned();
    let ask = |range: &str| site.send(&Request::get("/f.txt").header("Range", range));
    for (range, body, content_range) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=4-", "456789", "bytes 4-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=9-9", "9", "bytes 9-9/10"),
        ("bytes=5-100", "56789", "bytes 5-9/10"),
        ("bytes=-100", "0123456789", "bytes 0-9/10"),
    ] {
        let response = ask(range);
        assert_eq!((response.status, response.text().as_str()), (206, body), "{range}");
        assert_eq!(response.header("content-range"), Some(content_range), "{range}");
    }
    let refused = ask("bytes=10-");
    assert_eq!((refused.status, refused.header("content-range")), (416, Some("bytes */10")));
    let with =
        |condition: &str| site.send(&Request::get("/f.txt").header("Range", "bytes=0-0").header("If-Range", condition));
    assert_eq!(with(&etag).status, 206);
    assert_eq!(with("\"other\"").status, 200);
    assert_eq!(site.send(&Request::new("HEAD", "/f.txt").header("Range", "bytes=0-3")).body, b"");
    assert_eq!(ask("lines=0-3").status, 200);
});

scenario!(several_ranges_are_sent_in_parts, |s| s.file("f.txt", "0123456789".repeat(1000)), |site| {
    let response = site.send(&Request::get("/f.txt").header("Range", "bytes=0-1,5005-5006,-3"));
    assert_eq!(response.status, 206);
    let content_type = response.header("content-type").unwrap_or_default();
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect(content_type).trim_matches('"');
    let text = response.text();
    assert_eq!(text.matches(&format!("--{boundary}")).count(), 4, "{text}");
    for (range, content) in [("0-1", "01"), ("5005-5006", "56"), ("9997-9999", "789")] {
        assert!(text.contains(&format!("bytes {range}/10000\r\n\r\n{content}\r\n")), "{range} in {text}");
    }
    let storm: Vec<String> = (0..2000).map(|i| format!("{}-", i % 10)).collect();
    let response = site.send(&Request::get("/f.txt").header("Range", &format!("bytes={}", storm.join(","))));
    assert!(response.body.len() < 100_000, "many ranges must not multiply the work: {}", response.body.len());
});

scenario!(head_is_allowed_and_other_methods_are_refused, |s| s.file("f.txt", "0123456789"), |site| {
    let head = site.send(&Request::new("HEAD", "/f.txt")).expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("10"), 0));
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(site.send(&Request::new(method, "/f.txt").body("")).status, 405, "{method}");
    }
});

scenario!(
    big_files_arrive_whole,
    |s| s.file("big.bin", (0..3_000_000u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()),
    |site| {
        let mut conn = site.conn();
        for _ in 0..2 {
            let body = conn.exchange(&Request::get("/big.bin")).expect(200).body;
            assert_eq!(body.len(), 12_000_000);
            assert!(body.chunks(4).zip(0u32..).all(|(bytes, n)| bytes == n.to_le_bytes()));
        }
        let part = conn.exchange(&Request::get("/big.bin").header("Range", "bytes=4000000-4000003")).expect(206);
        assert_eq!(part.body, 1_000_000u32.to_le_bytes());
    },
);

scenario!(
    empty_files_and_files_with_odd_names_are_sent,
    |s| s
        .file("empty.txt", "")
        .file("sp ace+plus.txt", "space")
        .file("caf\u{e9}.txt", "utf8")
        .file("a%b.txt", "percent")
        .file("q?.txt", "question"),
    |site| {
        assert_eq!(site.get("/empty.txt").expect(200).body, b"");
        assert_eq!(site.get_ok("/sp%20ace+plus.txt"), "space");
        assert_eq!(site.get_ok("/caf%C3%A9.txt"), "utf8");
        assert_eq!(site.get_ok("/a%25b.txt"), "percent");
        assert_eq!(site.get_ok("/q%3F.txt?x=1"), "question");
    },
);

scenario!(
    directories_serve_their_index_and_never_a_listing,
    |s| s
        .file("html/index.html", "html index")
        .php("both/index.php", "echo 'php index';")
        .file("both/index.html", "html")
        .file("none/f.txt", "x"),
    |site| {
        assert_eq!(site.get_ok("/html/"), "html index");
        assert_eq!(site.get_ok("/both/"), "php index");
        for target in ["/html", "/both"] {
            let response = site.get(&format!("{target}?a=b"));
            assert!([301, 308].contains(&response.status), "{target}: {}", response.status);
            let location = response.header("location").unwrap_or_default();
            assert!(location.ends_with(&format!("{target}/?a=b")), "{location}");
        }
        // Without an index and a front controller: never a listing.
        assert!([403, 404].contains(&site.get("/none/").status));
        assert_eq!(site.get("/missing.txt").status, 404);
    },
);

scenario!(a_redirect_never_leads_to_another_host, |s| s.file("evil.example/index.html", "x"), |site| {
    for target in ["//evil.example", "/%2Fevil.example", "//evil.example/..//evil.example"] {
        let response = site.get(target);
        let location = response.header("location").unwrap_or_default();
        assert!(!location.starts_with("//"), "{target} leads to {location}");
    }
});

scenario!(
    dotfiles_are_hidden,
    howdah_only = "Debian's nginx sends dotfiles by default",
    |s| s
        .never_behind_nginx("nginx sends the files themselves")
        .file(".env", "SECRET")
        .file(".git/config", "SECRET")
        .file("d/.htaccess", "SECRET")
        .file(".well-known/acme", "public"),
    |site| {
        for target in [
            "/.env",
            "/.git/config",
            "/d/.htaccess",
            "/%2eenv",
            "/%2Egit/config",
            "/d/..//.env",
            "/./.env",
            "/.git/",
            "/.git",
        ] {
            let response = site.get(target);
            assert!([403, 404].contains(&response.status), "{target}: {}", response.status);
            assert!(!response.text().contains("SECRET"));
        }
        assert_eq!(site.get_ok("/.well-known/acme"), "public");
    },
);

scenario!(path_traversal_is_refused, |s| s.file("d/f.txt", "inside"), |site| {
    std::fs::write(site.place().top.join("outside.txt"), "OUTSIDE").unwrap();
    for target in [
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/d/../../outside.txt",
        "/..%2foutside.txt",
        "/d/%2e%2e/%2e%2e/outside.txt",
        "/..%5coutside.txt",
        "/%252e%252e/outside.txt",
        "//../outside.txt",
        "/d/..;/../outside.txt",
        "/..%00/outside.txt",
    ] {
        let mut conn = site.conn();
        conn.send(Request::get(target).close().bytes());
        let response = conn.response("GET");
        assert!([400, 403, 404].contains(&response.status), "{target}: {}", response.status);
        assert!(!response.text().contains("OUTSIDE"), "{target}");
    }
    assert_eq!(site.get_ok("/d/../d/f.txt"), "inside");
});

scenario!(
    symlinks_may_not_leave_the_root,
    howdah_only = "Debian's nginx follows every symbolic link",
    |s| s
        .never_behind_nginx("nginx sends the files themselves")
        .file("d/f.txt", "inside")
        .file("real/index.html", "linked index"),
    |site| {
        let top = site.place().top.clone();
        std::fs::create_dir(top.join("out")).unwrap();
        std::fs::write(top.join("out/secret.txt"), "OUTSIDE").unwrap();
        std::fs::write(top.join("out/secret.php"), "<?php echo 'OUTSIDE';").unwrap();
        symlink("d/f.txt", site.file("good.txt")).unwrap();
        symlink("real", site.file("alias")).unwrap();
        symlink(top.join("out/secret.txt"), site.file("bad.txt")).unwrap();
        symlink("../out", site.file("baddir")).unwrap();
        symlink(top.join("out/secret.php"), site.file("bad.php")).unwrap();
        assert_eq!(site.get_ok("/good.txt"), "inside");
        assert_eq!(site.get_ok("/alias/"), "linked index");
        for target in ["/bad.txt", "/baddir/secret.txt", "/baddir/secret.php", "/bad.php", "/baddir/"] {
            let response = site.get(target);
            assert!([403, 404].contains(&response.status), "{target}: {}", response.status);
            assert!(!response.text().contains("OUTSIDE"), "{target}");
        }
    },
);

scenario!(special_files_are_not_sent, |s| s.file("f.txt", "x"), |site| {
    let gate = site.gate("pipe");
    std::fs::rename(site.place().top.join("gates/pipe"), site.file("pipe.txt")).unwrap();
    drop(gate);
    // Opening a pipe would hang; the response must arrive, and must not be 200.
    assert!(!site.is_reference() && site.get("/pipe.txt").status >= 400 || site.is_reference());
    assert_eq!(site.get_ok("/f.txt"), "x");
});

scenario!(
    precompressed_twins_are_sent,
    howdah_only = "nginx needs modules and settings for it",
    |s| s
        .never_behind_nginx("nginx sends the files themselves")
        .file("a.css", "plain css")
        .file("a.css.gz", gzip("plain css"))
        .file("a.css.br", "BROTLI BYTES")
        .file("a.css.zst", "ZSTD BYTES")
        .file("only.js", "plain js")
        .file("only.js.gz", gzip("plain js")),
    |site| {
        let ask =
            |target: &str, accept: &str| site.send(&Request::get(target).header("Accept-Encoding", accept)).expect(200);
        let plain = site.get("/a.css").expect(200);
        assert_eq!((plain.text().as_str(), plain.header("content-encoding")), ("plain css", None));
        assert!(plain.varies_on("accept-encoding"));
        let gz = ask("/a.css", "gzip");
        assert_eq!((gz.header("content-encoding"), gz.decoded()), (Some("gzip"), b"plain css".to_vec()));
        assert!(
            gz.header("content-type").is_some_and(|t| t.starts_with("text/css")),
            "the type of the file, not of its twin"
        );
        assert!(gz.varies_on("accept-encoding"));
        assert_eq!(ask("/a.css", "br").text(), "BROTLI BYTES");
        assert_eq!(ask("/a.css", "zstd").text(), "ZSTD BYTES");
        assert_eq!(ask("/a.css", "gzip;q=0").header("content-encoding"), None);
        assert_eq!(ask("/a.css", "br;q=0.1, gzip;q=0.9").header("content-encoding"), Some("gzip"));
        let etags = [plain.header("etag"), gz.header("etag")];
        assert!(etags[0].is_some() && etags[0] != etags[1], "each representation has its own strong ETag: {etags:?}");
        assert_eq!(ask("/only.js", "br, gzip").decoded(), b"plain js");
    },
);

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
