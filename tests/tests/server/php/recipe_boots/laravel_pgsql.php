<?php
$own = ['driver' => 'pgsql', 'host' => '127.0.0.1', 'port' => __PORT__, 'database' => 'postgres', 'username' => 'tester', 'password' => '',
    'charset' => 'utf8', 'prefix' => '', 'search_path' => 'public', 'sslmode' => '__ENCRYPTION__'];
$redis = ['client' => 'phpredis', 'options' => ['prefix' => 'shop:'], 'default' => ['host' => '127.0.0.1', 'port' => __REDIS__, 'database' => 2]];
return ['default' => 'pgsql', 'connections' => ['pgsql' => $own], 'migrations' => 'migrations', 'redis' => $redis];
