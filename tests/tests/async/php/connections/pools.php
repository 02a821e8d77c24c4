<?php
require 'gate.php';
$shop = new Howdah\Pool(fn () => new stdClass(), max: 2, name: 'shop');
$other = new Howdah\Pool(fn () => throw new DomainException('nobody there'), max: 5);
while (frankenphp_handle_request(function () use ($shop, $other) {
    switch ($_GET['do'] ?? '') {
        case 'hold': $shop->use(function () {
            mark('held');
            while (!is_file(dirname(__DIR__) . '/marks/go')) {
                usleep(2000);
            }
        });
        echo 'held';
        break;
        case 'vain': try {
            $shop->get(0.01);
        } catch (Howdah\TimeoutException) {
            echo 'in vain';
        }
        break;
        case 'fail': try {
            $other->get();
        } catch (DomainException) {
            echo 'failed';
        }
        break;
        case 'names': static $pools;
        $pools = array_map(fn ($n) => new Howdah\Pool(fn () => new stdClass(), name: $n . str_repeat('n', 100)), range(1, 50));
        echo 'made';
        break;
        case 'same': $pool = new Howdah\Pool(fn () => new stdClass(), name: 'shop');
        $pool->use(fn () => 1);
        echo $pool->name, ' ', (new Howdah\Pool(fn () => 1))->name;
        break;
    }
    if (isset($_GET['pid'])) {
        echo posix_getpid();
    }
})) {}
