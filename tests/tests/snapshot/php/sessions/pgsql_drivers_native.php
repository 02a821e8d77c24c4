<?php
function sql($s) {
    return pg_query($GLOBALS['db'], $s);
}
function value($s) {
    return pg_fetch_result(pg_query($GLOBALS['db'], $s), 0);
}
