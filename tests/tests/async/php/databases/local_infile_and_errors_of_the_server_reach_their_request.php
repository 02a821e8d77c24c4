<?php
$file = tempnam(sys_get_temp_dir(), 'load');
file_put_contents($file, str_repeat("$m\n", 2000));
$name = "d$m";
$db->exec("CREATE DATABASE $name");
$db->exec("CREATE TABLE $name.t (m VARCHAR(50))");
meet('a');
$db->exec("LOAD DATA LOCAL INFILE '$file' INTO TABLE $name.t");
unlink($file);
echo implode(' ', $db->query("SELECT MIN(m), COUNT(*) FROM $name.t")->fetch(PDO::FETCH_NUM));
try {
    $db->query("SELECT * FROM no_such.`$m`");
} catch (PDOException $e) {
    echo ' ', preg_replace('/.*(42S02|42000).*/s', '$1', $e->getMessage()), str_contains($e->getMessage(), 'no_such') ? '' : '?';
}
$id = $db->query('SELECT CONNECTION_ID()')->fetchColumn();
$t = Howdah\go(function () use ($db, $m) {
    try {
        @$db->query('SELECT SLEEP(100)')->fetch();
        return 'slept';
    } catch (PDOException $e) {
        return " $m " . $e->errorInfo[1];
    }
});
meet('b');
usleep(50000);
(new PDO("mysql:host=127.0.0.1;port=$port", 'tester', ''))->exec("KILL $id");
$gone = Howdah\await($t);
echo in_array(substr($gone, -4), ['2006', '2013', '1317', '1927']) ? ' gone' : $gone;
try {
    new PDO('mysql:host=127.0.0.1;port=1', 'tester', '');
} catch (PDOException $e) {
    echo ' ', $e->getCode();
}
