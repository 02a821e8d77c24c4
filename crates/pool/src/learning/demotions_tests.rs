use super::*;

fn differs(table: &mut Table, route: &str) -> Option<DemotedRoute> {
    table.note_comparison(route, Verdict::Differs("body: \"1\"".to_owned()))
}

#[test]
fn pages_of_one_route_are_demoted_together_and_with_one_page_its_route() {
    let mut table = Table::default();
    table.note_route(b"product", b"/products/mug");
    (0..DIFFERING).for_each(|_| drop(differs(&mut table, "/products/mug")));
    differs(&mut table, "/products/cap");
    table.note_route(b"latest", b"/products/latest");
    table.note_route(b"product", b"/products/cap");
    assert_eq!(table.demoted.keys().collect::<Vec<_>>(), ["/products/*"]);
    assert_eq!(table.demoted["/products/*"].route, "/products/*");
    assert!(table.suspects.is_empty());
    let way_of = |table: &mut Table, path: &str| {
        let route = table.routes.of(path.as_bytes());
        table.note_request(&route)
    };
    assert_eq!(way_of(&mut table, "/products/never-seen"), Placement::Classic);
    assert_eq!(way_of(&mut table, "/products/latest"), Placement::Own);
    assert_eq!(table.restore("/products/mug"), ["/products/*"]);
    assert_eq!(way_of(&mut table, "/products/never-seen"), Placement::Own);
}

#[test]
fn a_route_that_differs_three_times_in_ten_is_demoted_and_one_that_rarely_does_is_not() {
    let mut table = Table::default();
    for n in 0..100 {
        let demoted =
            if n % 5 == 0 { differs(&mut table, "/rare") } else { table.note_comparison("/rare", Verdict::Same) };
        assert_eq!(demoted, None, "{n}");
    }
    assert_eq!(table.note_comparison("/fine", Verdict::Same), None);
    assert_eq!((table.note_request("/fine"), table.suspects.len()), (Placement::Own, 1));
    assert_eq!((differs(&mut table, "/leak"), table.note_request("/leak")), (None, Placement::Suspected));
    assert_eq!(table.note_comparison("/leak", Verdict::Same), None);
    assert_eq!(differs(&mut table, "/leak"), None);
    let demoted = differs(&mut table, "/leak").unwrap();
    assert_eq!(demoted.reason, "3 of 4 responses differed, latest: body: \"1\"");
    assert_eq!((table.note_request("/leak"), table.note_request("/rare")), (Placement::Classic, Placement::Suspected));
    assert_eq!(differs(&mut table, "/leak"), None, "once");
    assert_eq!(table.restore("/leak?x=1"), ["/leak"]);
    assert_eq!(
        (table.note_request("/leak"), differs(&mut table, "/leak")),
        (Placement::Own, None),
        "its record restarts"
    );
}

#[test]
fn a_route_is_demoted_if_it_is_slower_nearly_every_time_not_occasionally() {
    let mut table = Table::default();
    let slower =
        |table: &mut Table, route: &str| table.note_comparison(route, Verdict::Slower("2 ms, 1 ms".to_owned()));
    for n in 0..100 {
        let demoted =
            if n % 3 == 0 { table.note_comparison("/busy", Verdict::Same) } else { slower(&mut table, "/busy") };
        assert!(demoted.is_none(), "{n}: {demoted:?}");
    }
    for n in 0..7 {
        assert_eq!(slower(&mut table, "/slow"), None, "{n}");
        assert_eq!(table.note_request("/slow"), Placement::Suspected);
    }
    assert_eq!(table.note_comparison("/slow", Verdict::Same), None);
    let demoted = slower(&mut table, "/slow").unwrap();
    assert_eq!(demoted.reason, "8 of 9 requests took longer than in classic mode, latest: 2 ms, 1 ms");
    assert_eq!(table.note_request("/slow"), Placement::Cold);
    (0..COMPARISONS).for_each(|_| drop(table.note_comparison("/busy", Verdict::Same)));
    assert!(table.suspects.is_empty(), "{table:?}");
}

#[test]
fn cold_routes_are_compared_and_demoted_until_warm_if_slower() {
    let mut table = Table::default();
    let cold = |table: &mut Table, route: &str| {
        for _ in 0..SEARCHES {
            let _ = table.note_request(route);
            table.note_search(route);
        }
        table.note_request(route)
    };
    assert_eq!((cold(&mut table, "/cold"), cold(&mut table, "/fast")), (Placement::Suspected, Placement::Suspected));
    for _ in 0..100 {
        let _ = table.note_request("/warm");
        table.note_search("/seldom");
        for _ in 0..3 {
            let _ = table.note_request("/seldom");
        }
    }
    assert_eq!((table.note_request("/warm"), table.note_request("/seldom")), (Placement::Own, Placement::Own));
    assert_eq!(table.note_comparison("/fast", Verdict::Same), None);
    assert_eq!(cold(&mut table, "/fast"), Placement::Own, "until some requests have passed");
    for _ in 0..FORGIVE_AFTER {
        let _ = table.note_request("/fast");
    }
    assert_eq!(cold(&mut table, "/fast"), Placement::Suspected, "and then again");
    let slower = || Verdict::Slower("9 ms, 5 ms".to_owned());
    (1..SLOWER).for_each(|_| assert_eq!(table.note_comparison("/cold", slower()), None));
    let demoted = table.note_comparison("/cold", slower()).unwrap();
    assert!(demoted.reason.ends_with("9 ms, 5 ms; it is not warm: each restore searches for written pages"));
    assert_eq!(table.note_request("/cold"), Placement::Cold);
}

#[test]
fn a_target_with_a_token_is_not_kept_for_its_slow_restores() {
    let metrics = howdah_observe::metrics::Metrics::new().pool("app");
    let demotions = Demotions::new("app".into(), "default".into(), metrics);
    demotions.note_search(b"/orders/9f86d081884c7d659a2feaa0c55ad015/items");
    assert_eq!(demotions.suspected(), []);
    demotions.note_search(b"/orders");
    assert_eq!(demotions.suspected()[0].route, "/orders");
}

#[test]
fn a_route_that_has_not_differed_for_long_is_forgotten() {
    let mut table = Table::default();
    differs(&mut table, "/");
    differs(&mut table, "/");
    (0..COMPARISONS).for_each(|_| drop(table.note_comparison("/", Verdict::Same)));
    assert!(table.is_empty());
}

#[test]
fn a_route_whose_requests_kill_workers_is_demoted_and_kills_from_outside_demote_none() {
    let (mut table, start) = (Table::default(), Instant::now());
    let second = Duration::from_secs(1);
    assert_eq!(table.note_death("/kill", false, start), None);
    assert_eq!(table.note_death("/kill", false, start + SAME_DEATH_WINDOW / 2), None, "together with the first");
    assert_eq!(table.note_death("/kill", false, start + second), None);
    let demoted = table.note_death("/kill", true, start + second).unwrap();
    assert_eq!(demoted.reason, "its requests have killed 3 workers");
    // Most requests survive.
    for n in 0..50 {
        assert_eq!(table.note_death("/busy", false, start + second * n), None, "{n}");
        (0..REQUESTS * 2).for_each(|_| assert_eq!(table.note_request("/busy"), Placement::Own));
    }
    // Once a day.
    for n in 0..10 {
        assert_eq!(table.note_death("/seldom", false, start + FORGET_AFTER * n), None, "{n}");
    }
}

#[test]
fn both_tables_are_bounded_and_too_many_demotions_demote_all_routes() {
    let mut table = Table::default();
    let name = |n: usize| format!("/{}", "x".repeat(n));
    (0..1000).for_each(|n| drop(differs(&mut table, &name(n))));
    assert_eq!(table.suspects.len(), MAX_SUSPECTS);
    assert!(!table.suspects.contains_key(&name(1)) && table.suspects.contains_key(&name(999)));
    for n in 0..MAX_DEMOTED {
        assert_eq!(table.note_request("/other"), Placement::Own);
        (0..DIFFERING).for_each(|_| drop(differs(&mut table, &name(n))));
    }
    (0..DIFFERING).for_each(|_| drop(differs(&mut table, "/last")));
    assert_eq!((table.demoted.len(), table.note_request("/other")), (MAX_DEMOTED + 1, Placement::Classic));
    assert!(differs(&mut table, "/more").is_none());
    assert_eq!(table.restore("*").len(), MAX_DEMOTED + 1);
    assert!(table.is_empty());
}

#[test]
fn the_length_of_reasons_is_limited() {
    let mut table = Table::default();
    let long = || Verdict::Differs("ü".repeat(10_000));
    (0..DIFFERING - 1).for_each(|_| drop(table.note_comparison("/", long())));
    assert!(table.note_comparison("/", long()).unwrap().reason.len() <= MAX_REASON_LEN);
}
