<?php
$watch = new PDO("mysql:host=127.0.0.1;port=$port", 'tester', '');
$watch->query("SELECT GET_LOCK('l$m', 0)")->fetchColumn();
meet('a');
$t = Howdah\go(fn () => $db->query("SELECT GET_LOCK('l$m', 100)")->fetchColumn());
for ($waiting = $turn = 0; $waiting < __CROWD__ && $turn < 400; $turn++) {
    usleep(50000);
    $waiting = (int) $watch->query("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK(%, 100)'")->fetchColumn();
}
meet('b');
$watch->query("SELECT RELEASE_LOCK('l$m')")->fetchColumn();
echo $waiting === __CROWD__ ? 'all ' : "$waiting ", Howdah\await($t), $m;
