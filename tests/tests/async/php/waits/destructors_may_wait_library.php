<?php
class Ends {
    public $self;
    function __construct(public $m) {}
    function __destruct() {
        usleep(random_int(1, 2000));
        echo "~$this->m";
        for ($i = 0; $i < 100; $i++) {
            $GLOBALS["made in the end $i"] = $this->m;
        }
    }
}
