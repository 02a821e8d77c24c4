<?php
$value = fn (string $sql) => json_encode(value($sql));
echo 'ok ', $value("SELECT CONCAT_WS('|', @@autocommit, @@in_transaction, IFNULL(@v, '-'), @boot, @@sql_mode, @@time_zone, DATABASE(), IS_FREE_LOCK('l'), @@character_set_client, @@collation_connection)"), $value('SELECT COUNT(*) FROM t'), $value("SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Sleep' AND user = 'nobody'");
try {
    $value('SELECT COUNT(*) FROM temporary');
    echo ' temporary';
} catch (Throwable) {}
echo $value("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Prepared_stmt_count'");
try {
    $value('SELECT COUNT(*) FROM other.t');
} catch (Throwable) {
    echo ' locked';
}
