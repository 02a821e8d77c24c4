<?php
require 'gate.php';
class Store implements SessionHandlerInterface {
    public static $all = [];
    public function open($p, $n): bool {
        return true;
    }
    public function close(): bool {
        return true;
    }
    public function read($id): string|false {
        return self::$all[$id] ?? '';
    }
    public function write($id, $data): bool {
        self::$all[$id] = $data;
        return true;
    }
    public function destroy($id): bool {
        unset(self::$all[$id]);
        return true;
    }
    public function gc($t): int|false {
        return 0;
    }
}
session_set_save_handler(new Store, true);
while (frankenphp_handle_request(function () {
    $before = [isset($_SESSION), session_id(), session_status()];
    if (isset($_GET['start'])) {
        session_start();
        $_SESSION['v'] = ($_SESSION['v'] ?? 0) + 1;
    }
    if (isset($_GET['exit'])) {
        exit('left');
    }
    echo json_encode([$before, $_SESSION ?? null, count(Store::$all)]);
})) {}
