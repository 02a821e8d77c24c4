<?php
class Leaves {
    function __construct(public $m) {}
    function __destruct() {
        usleep(1000);
        exit("left $this->m");
    }
}
