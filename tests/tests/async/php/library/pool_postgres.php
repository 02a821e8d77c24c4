<?php
/* Pooled PDO connections to PostgreSQL. */
use Howdah\Pool;

return static function (callable $is, callable $error): void {
    $pool = Pool::pdo("pgsql:host=127.0.0.1;port={$_GET['port']};dbname=postgres;sslmode=disable", 'tester');
    $left = static function ($db): void {
        $db->exec("SET application_name = 'mine'");
        $db->exec('CREATE TEMP TABLE leftover (a INT)');
        $db->exec('BEGIN');
        $db->exec('INSERT INTO leftover VALUES (1)');
    };
    $is('told', $error(static fn () => $pool->use($left)), 'OpenTransactionError');
    $state = static fn ($db): array => [$db->query('SHOW application_name')->fetchColumn(), $db->query("SELECT COUNT(*) FROM pg_tables WHERE tablename = 'leftover'")->fetchColumn(), $db->inTransaction()];
    $is('reset', $pool->use($state), ['', 0, false]);
    $is('one connection', $pool->stats()['opened'], 1);
};
