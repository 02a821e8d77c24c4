<?php
$s = $db->prepare('SELECT ? AS m, SLEEP(0.01)');
$s->execute([$m]);
meet('a');
echo $s->fetch()['m'];
$db->setAttribute(PDO::ATTR_EMULATE_PREPARES, false);
$s = $db->prepare('SELECT CONCAT(?, seq) FROM (SELECT 1 AS seq UNION ALL SELECT 2 UNION ALL SELECT 3) q');
$s->execute([$m]);
meet('b');
echo ' ', implode(',', $s->fetchAll(PDO::FETCH_COLUMN));
$db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
$s = $db->query("SELECT CONCAT('$m', REPEAT('x', 100000)) FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) q");
$n = 0;
while ($row = $s->fetchColumn()) {
    pause();
    $n += str_starts_with($row, $m) ? strlen($row) - strlen($m) : 0;
}
echo ' ', $n;
$s = null;
$db->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
$db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, true);
$s = $db->query("SELECT '$m'; SELECT SLEEP(0.01); SELECT '$m-2'");
echo ' ', $s->fetchColumn();
$s->nextRowset();
meet('c');
$s->nextRowset();
echo ' ', $s->fetchColumn();
