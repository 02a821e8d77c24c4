<?php

/** A worker script whose service keeps visitors' data. */

namespace App;

final class Basket
{
    public array $items = [];
}

$basket = new Basket();
$database = new \PDO('sqlite:' . __DIR__ . '/visits.sqlite');
$database->exec('PRAGMA busy_timeout = 5000');
unset($database);

$handle = static function () use ($basket): void {
    $database = new \PDO('sqlite:' . __DIR__ . '/visits.sqlite');
    $database->exec('PRAGMA busy_timeout = 5000');
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    header('Content-Type: text/html');
    if ($path === '/basket') {
        $basket->items[] = $_SERVER['HTTP_USER_AGENT'];
        echo 'put';
        return;
    }
    $database->exec("insert into visit values ('x')");
    echo '<a href="/basket">basket</a>';
};
while (frankenphp_handle_request($handle)) {
}
