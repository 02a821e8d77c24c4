<?php
class D {
    function __construct(public $name) {}
    function __destruct() {
        echo "[$this->name]";
    }
}
$booted = new D('boot');
register_shutdown_function(function () {
    echo '[shutdown]';
});
