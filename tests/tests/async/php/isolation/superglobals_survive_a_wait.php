<?php
$look = fn () => json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST, $_SERVER['QUERY_STRING'], $_SERVER['HTTP_X_MARK'],
    array_map(fn ($f) => [$f['name'], md5_file($f['tmp_name'])], $_FILES), $_SERVER['REQUEST_URI'], getallheaders()['X-Mark'], getenv('HTTP_X_MARK')]);
$before = $look();
meet('a');
$after = $look();
$_GET['own'] = $_SERVER['own'] = $_POST['own'] = $m;
meet('b');
echo $before === $after ? $after : "$before is not $after", ' ', $_GET['own'], $_SERVER['own'], $_POST['own'];
