<?php
class Leaky {
    public static $n = 0;
    public $list = [];
}
function counter() {
    static $n = 0;
    return $n++;
}
$GLOBALS['boot'] = 'as booted';
$GLOBALS['thing'] = new Leaky;
