<?php
/* Pooled PDO connections to PostgreSQL. */
use Howdah\Pool;

return static function (callable $is): void {
    $pool = Pool::pdo("pgsql:host=127.0.0.1;port={$_GET['port']};dbname=postgres;sslmode=disable", 'tester');
    $pool->use(static function ($db): void {
        $db->exec("SET application_name = 'mine'");
        $db->exec('CREATE TEMP TABLE leftover (a INT)');
        $db->exec('BEGIN');
        $db->exec('INSERT INTO leftover VALUES (1)');
    });
    $state = static fn ($db): array => [$db->query('SHOW application_name')->fetchColumn(), $db->query("SELECT COUNT(*) FROM pg_tables WHERE tablename = 'leftover'")->fetchColumn(), $db->inTransaction()];
    $is('reset', $pool->use($state), ['', 0, false]);
    $is('one connection', $pool->stats()['opened'], 1);
};
