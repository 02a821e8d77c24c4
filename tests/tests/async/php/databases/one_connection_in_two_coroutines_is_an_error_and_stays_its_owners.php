<?php
$holder = new PDO("mysql:host=127.0.0.1;port=$port", 'tester', '');
$holder->query("SELECT GET_LOCK('l$m', 0)")->fetchColumn();
$t = Howdah\go(fn () => $db->query("SELECT GET_LOCK('l$m', 100), '$m'")->fetchColumn(1));
meet('a');
usleep(20000);
try {
    $db->query('SELECT 1');
    echo 'mixed';
} catch (Howdah\ConcurrentUseError $e) {
    echo 'refused ';
}
$holder->query("SELECT RELEASE_LOCK('l$m')")->fetchColumn();
echo Howdah\await($t);
echo $db->query("SELECT '$m'")->fetchColumn();
