<?php
if (!class_exists('Kept', false)) {
    class Kept {
        public static $pool;
        static function deep() {
            self::$pool->mine()->beginTransaction();
        }
    }
}
return function ($is) {
    Kept::$pool ??= Howdah\Pool::pdo('mysql:host=127.0.0.1;port=__PORT__', 'tester', '', max: 1);
    Kept::deep();
    $is('', 1, 1);
};
