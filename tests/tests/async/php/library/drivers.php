<?php
/* A statement that only reads, by PDO's name of the driver: is its session as good as new afterwards? */
return static function (callable $is): void {
    $changed = static function (string $driver): bool {
        $state = new Howdah\Internal\ConnectionState();
        $state->lend();
        $state->look($driver, 'SELECT 1');

        return $state->changed;
    };
    foreach (['mysql' => false, 'pgsql' => false, 'sqlite' => false, 'odbc' => true, 'firebird' => true] as $driver => $expected) {
        $is($driver, $changed($driver), $expected);
    }
};
