<?php
class Slow {
    public $m;
    public $again;
    function __sleep() {
        usleep(random_int(1, 2000));
        return ['m', 'again'];
    }
    function __wakeup() {
        usleep(random_int(1, 2000));
    }
}
class Newer implements JsonSerializable {
    public function __construct(public $m = '', public $in = null) {}
    function __serialize(): array {
        pause();
        return [$this->m, serialize($this->in)];
    }
    function __unserialize(array $d): void {
        pause();
        $this->m = $d[0];
        $this->in = unserialize($d[1]);
    }
    function jsonSerialize(): mixed {
        pause();
        return [$this->m];
    }
}
