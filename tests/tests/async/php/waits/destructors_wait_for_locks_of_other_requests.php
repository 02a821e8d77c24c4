<?php
class Locks {
    function __construct(public $m) {}
    function __destruct() {
        $f = fopen(dirname(__DIR__) . '/marks/lock', 'c+');
        flock($f, LOCK_EX);
        usleep(2000);
        echo "locked $this->m";
    }
}
