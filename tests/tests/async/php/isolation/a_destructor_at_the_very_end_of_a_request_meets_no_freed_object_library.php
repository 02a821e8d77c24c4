<?php
class Late implements SessionHandlerInterface {
    static $done = [];
    function __construct(public $m) {}
    function open(string $p, string $n): bool {
        return true;
    }
    function close(): bool {
        return true;
    }
    function read(string $id): string {
        return '';
    }
    function write(string $id, string $d): bool {
        return true;
    }
    function destroy(string $id): bool {
        return true;
    }
    function gc(int $l): int {
        return 0;
    }
    function __destruct() {
        pause();
        $seen = error_get_last()['message'];
        strtok('some other text', ' ');
        for ($i = 0; $i < 20; $i++) {
            $GLOBALS["late$i"] = [$this->m];
        }
        @trigger_error("late $this->m");
        pause();
        self::$done[] = $seen . ', ' . error_get_last()['message'] . ', ' . strtok(' ') . ', ' . $GLOBALS['late19'][0];
    }
}
