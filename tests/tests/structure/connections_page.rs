//! Every row and list item of `docs/reference/connections.md` names the tests that hold it, so that a new claim needs a
//! test and a test that goes takes its claim along.

use super::read;
use std::collections::BTreeSet;

const PAGE: &str = "docs/reference/connections.md";

/// The beginning of a row or item, and the tests: `FILE: FUNCTION`, below `tests/tests`.
const CLAIMS: &[(&str, &[&str])] = &[
    (
        "MySQL, MariaDB (mysqli, PDO, clients in PHP)",
        &[
            "snapshot/sessions.rs: each_request_finds_the_boots_mysql_session",
            "snapshot/sessions.rs: changes_by_functions_of_mysqli_and_pdo_are_undone",
            "snapshot/sessions.rs: a_process_for_each_request_leaves_no_more_in_a_session",
        ],
    ),
    (
        "PostgreSQL (pgsql, PDO)",
        &[
            "snapshot/sessions.rs: each_request_finds_the_boots_postgresql_session",
            "snapshot/sessions.rs: changes_by_functions_of_pgsql_and_pdo_are_undone",
        ],
    ),
    ("Redis (phpredis, other clients)", &["snapshot/sessions.rs: each_request_finds_the_boots_redis_connection"]),
    ("SQLite (PDO, sqlite3)", &["snapshot/files.rs: each_request_finds_the_boots_sqlite_connection"]),
    (
        "other protocols",
        &[
            "snapshot/connections.rs: a_connection_of_the_boot_is_used_by_thousands_of_requests",
            "snapshot/connections.rs: an_unread_answer_replaces_the_worker",
        ],
    ),
    (
        "**Statements that change the session**",
        &[
            "snapshot/sessions.rs: requests_that_change_no_session_cost_mysql_no_extra_query",
            "snapshot/sessions.rs: requests_that_change_no_session_cost_redis_no_extra_command",
            "snapshot/sessions.rs: each_request_finds_the_boots_postgresql_session",
        ],
    ),
    ("**Not reset** otherwise", &["snapshot/kept_sessions.rs: the_last_insert_id_of_a_request_is_seen_by_the_next"]),
    (
        "a session must be reset, but the boot left something",
        &["snapshot/sessions.rs: a_session_that_cannot_be_restored_costs_the_worker"],
    ),
    (
        "a response is unread, or the script closes a connection",
        &[
            "snapshot/sessions.rs: an_answer_on_its_way_never_reaches_the_next_request",
            "snapshot/connections.rs: a_connection_that_a_request_closes_comes_back",
        ],
    ),
    (
        "a connection that the request used is compressed",
        &["snapshot/kept_sessions.rs: a_compressed_connection_costs_the_worker_that_uses_it"],
    ),
    (
        "the database does not answer the reset",
        &["snapshot/kept_sessions.rs: a_database_that_does_not_answer_the_reset_costs_the_worker"],
    ),
    (
        "with an open transaction, `MULTI` or watched keys",
        &[
            "snapshot/sessions.rs: a_boot_that_leaves_a_transaction_open_is_refused",
            "snapshot/kept_sessions.rs: transactions_of_a_boot_without_autocommit_are_rolled_back",
        ],
    ),
    ("with an unread response", &["snapshot/kept_sessions.rs: a_boot_that_leaves_a_response_unread_is_refused"]),
    (
        "encrypted by OpenSSL or GnuTLS",
        &[
            "snapshot/servers.rs: an_encrypted_mysqli_connection_is_refused",
            "snapshot/servers.rs: an_encrypted_pgsql_connection_is_refused",
            "snapshot/servers.rs: an_encrypted_redis_connection_is_refused",
            "snapshot/servers.rs: an_encrypted_connection_of_a_curl_handle_is_refused",
            "snapshot/other_tls.rs: a_connection_by_gnutls_that_the_boot_leaves_open_is_refused",
        ],
    ),
    (
        "over TCP, of a library that the server cannot observe",
        &["snapshot/other_tls.rs: a_connection_on_which_the_boot_has_talked_unseen_is_refused"],
    ),
    (
        "A script that opens and closes the database file itself",
        &["snapshot/files.rs: a_second_connection_to_a_database_of_the_boot_keeps_the_worker"],
    ),
    (
        "If the file is replaced, removed or emptied",
        &["snapshot/files.rs: a_replaced_or_rebuilt_database_is_not_the_one_opened_at_boot"],
    ),
    ("`PRAGMA locking_mode=EXCLUSIVE`", &["snapshot/files.rs: databases_that_a_snapshot_cannot_hold_are_refused"]),
    (
        "PDO, all drivers",
        &[
            "async/library.rs: pooled_mysql_connections_are_as_good_as_new",
            "async/connections.rs: a_transaction_left_open_is_an_error_with_its_locations",
        ],
    ),
    ("PDO, MySQL and SQLite", &["async/library.rs: pooled_mysql_connections_are_as_good_as_new"]),
    ("PDO, PostgreSQL", &["async/library.rs: pooled_postgres_connections_are_as_good_as_new"]),
    ("PDO, other drivers", &["async/library.rs: a_session_of_a_driver_whose_sql_is_not_read_counts_as_changed"]),
    (
        "mysqli",
        &[
            "async/library.rs: pooled_mysql_connections_are_as_good_as_new",
            "async/connections.rs: a_transaction_left_open_is_an_error_with_its_locations",
        ],
    ),
    ("phpredis", &["async/library.rs: pooled_redis_connections_are_as_good_as_new"]),
];

/// Rows of tables without their heads, and items of lists.
fn claims(page: &str) -> Vec<&str> {
    let lines: Vec<&str> = page.lines().collect();
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("|--"));
    let rows = (0..lines.len()).filter(|at| !is_head(*at)).filter_map(|at| lines[at].strip_prefix("| "));
    rows.chain(lines.iter().filter_map(|line| line.strip_prefix("- "))).collect()
}

#[test]
fn every_claim_about_connections_is_held_by_a_test() {
    let page = read(PAGE);
    let claims = claims(&page);
    let begins = |claim: &str, start: &str| {
        claim.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let open: Vec<&&str> =
        claims.iter().filter(|claim| !CLAIMS.iter().any(|(start, _)| begins(claim, start))).collect();
    assert!(open.is_empty(), "{PAGE}: name the tests that hold {open:#?}");
    let gone: Vec<&str> = CLAIMS
        .iter()
        .map(|(start, _)| *start)
        .filter(|start| !claims.iter().any(|claim| begins(claim, start)))
        .collect();
    assert!(gone.is_empty(), "{PAGE} no longer has {gone:#?}");
    let is_missing = |test: &&&str| {
        let (file, name) = test.split_once(": ").unwrap();
        !read(&format!("tests/tests/{file}")).contains(&format!("#[test]\nfn {name}("))
    };
    let missing: BTreeSet<&&str> = CLAIMS.iter().flat_map(|(_, tests)| *tests).filter(is_missing).collect();
    assert!(missing.is_empty(), "there is no test {missing:#?}");
}
