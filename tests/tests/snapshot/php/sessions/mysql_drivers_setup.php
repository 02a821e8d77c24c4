<?php
$admin = new mysqli('127.0.0.1', 'tester', '', '', __PORT__);
$admin->multi_query("__MYSQL_SCHEMA__");
while ($admin->more_results()) {
    $admin->next_result();
}
$admin->close();
unset($admin);
