<?php
class Kept implements SessionHandlerInterface {
    static $all = [];
    function __construct(public $m) {}
    function open(string $p, string $n): bool {
        pause();
        return true;
    }
    function close(): bool {
        pause();
        return true;
    }
    function read(string $id): string {
        pause();
        return self::$all[$id] ?? '';
    }
    function write(string $id, string $d): bool {
        pause();
        self::$all[$id] = $d . $this->m;
        return true;
    }
    function destroy(string $id): bool {
        return true;
    }
    function gc(int $l): int {
        return 0;
    }
}
