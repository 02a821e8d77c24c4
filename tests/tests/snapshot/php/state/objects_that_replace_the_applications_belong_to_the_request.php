<?php
class D {
    function __construct(public $name) {}
    function __destruct() {
        echo "[$this->name]";
    }
}
$holes = [];
for ($i = 0; $i < 300; $i++) {
    $holes[] = new ArrayObject;
    if ($i === 150) {
        $booted = new D('boot');
    }
}
for ($i = 0; $i < 300; $i += 3) {
    unset($holes[$i]);
}
unset($i);
