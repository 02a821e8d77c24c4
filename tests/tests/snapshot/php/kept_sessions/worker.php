<?php
$db = new mysqli('127.0.0.1', 'tester', '', '', __PORT__);
$handle = static function () use ($db): void {
    $open = $db->query('SELECT @@in_transaction')->fetch_row()[0];
    $db->query($_GET['sql'] ?? 'SELECT 1');
    echo $open;
};
while (frankenphp_handle_request($handle)) {
}
