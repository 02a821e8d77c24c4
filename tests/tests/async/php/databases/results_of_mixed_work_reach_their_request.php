<?php
$db = new PDO('mysql:host=127.0.0.1;port=__SQL__', 'tester', '');
$r = new Redis;
$r->connect('127.0.0.1', __REDIS__);
$bad = [];
for ($i = 0; $i < 10; $i++) {
    $key = "$m.$i";
    $r->set($key, $m);
    if ($db->query("SELECT '$key'")->fetchColumn() !== $key) {
        $bad[] = 'sql';
    }
    if ($r->get($key) !== $m) {
        $bad[] = 'redis';
    }
    if ($_GET['m'] !== $m) {
        $bad[] = 'get';
    }
    ob_start();
    echo $key;
    pause();
    if (ob_get_clean() !== $key) {
        $bad[] = 'ob';
    }
}
echo implode(',', $bad), $m;
