<?php
$own = ['driver' => 'mysql', 'read' => ['host' => '127.0.0.1'], 'write' => ['host' => '127.0.0.1'], 'port' => __PORT__, 'database' => 'mysql', 'username' => 'tester', 'password' => '',
    'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true];
return ['default' => 'mysql', 'connections' => ['mysql' => $own], 'migrations' => 'migrations'];
