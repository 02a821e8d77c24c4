<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$i = new mysqli('127.0.0.1', 'tester', '', '', $port);
$s = $i->prepare('SELECT SLEEP(0.05), ?');
$s->bind_param('s', $m);
meet('a');
$s->execute();
$s->bind_result($zero, $back);
$s->fetch();
$s->close();
echo $back;
$i->multi_query("SELECT '$m'; SELECT SLEEP(0.02); SELECT 'two$m'");
meet('b');
$all = '';
do {
    if ($r = $i->store_result()) {
        $all .= $r->fetch_row()[0] . ' ';
    }
}
while ($i->more_results() && $i->next_result());
echo ' ', $all;
$i->query("SELECT SLEEP(0.1), '$m'", MYSQLI_ASYNC);
$read = $err = $rej = [$i];
meet('c');
while (!mysqli_poll($read, $err, $rej, 50)) {
    $read = $err = $rej = [$i];
}
echo $i->reap_async_query()->fetch_row()[1];
try {
    $i->query('SELECT nothing');
} catch (mysqli_sql_exception $e) {
    echo ' ', $e->getCode();
}
