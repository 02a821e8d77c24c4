<?php
if (!class_exists('Held', false)) {
    class Held {
        public static array $all = [];
    }
}
$key = ftok(__FILE__, 'h');
switch ($_GET['what']) {
    case 'descriptor':
        $held = fopen('/dev/null', 'r');
        break;
    case 'lock':
        $held = fopen(__FILE__, 'r');
        flock($held, LOCK_EX | LOCK_NB, $blocked);
        break;
    case 'mapping':
        $held = shmop_open($key, 'c', 0600, 4096);
        break;
    case 'semaphore':
        $held = sem_get($key);
        sem_acquire($held, true);
        break;
    case 'clean':
        shmop_delete(shmop_open($key, 'c', 0600, 4096));
        sem_remove(sem_get($key));
        exit;
}
Held::$all[] = $held;
